import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { environmentNames } from '@platform/modules/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fixture } from '../support/author.ts'
import { moduleProcesses } from '../support/module-process.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const deploymentSpec = (main: string, startsItself = true) => ({
  id: main.replaceAll(' ', '-'),
  moduleId: main,
  version: '1.0.0',
  repository: fixture(main),
  digest: 'sha256:0',
  organisationId: 'org_acme',
  startsItself,
})

const limits = { timeoutMs: 10_000, maxBytes: 1_000_000 }

const textOf = (response: { body: Uint8Array }): string => Buffer.from(response.body).toString()

/** Starts a module with its own environment. */
function program(main: string, env: Record<string, string>): Program {
  const started = new Program(process.execPath, main.split(' '), {
    cwd: process.cwd(),
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
  })
  onTestFinished(() => started.kill())
  return started
}

describe('a module process', () => {
  test('starts itself if configured, and responds', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    const response = await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)
    expect(JSON.parse(textOf(response))).toEqual({
      orgId: 'org_acme',
      module: { id: 'calm', version: '1.0.0' },
      isPersistent: true,
    })
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
  })

  test('waits for the platform otherwise', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm', false))
    expect((await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(503)
    expect(runtime.hooks(deployment)).toEqual(['configureServices'])
  })

  test('transfers binary bodies', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
    const response = await runtime.request(deployment, { method: 'POST', path: '/api/calm/echo', body }, limits)
    expect(Buffer.from(response.body).equals(body)).toBe(true)
  })

  test('rejects a body of more than 8 MiB, and continues', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    const echo = { method: 'POST', path: '/api/calm/echo', body: Buffer.alloc(8 * 1024 * 1024 + 1) }
    expect((await runtime.request(deployment, echo, limits)).status).toBe(413)
    expect((await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
  })

  test('continues after invalid requests', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    for (const bytes of [
      '\0\0\0',
      'GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n',
      'POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nx',
    ]) {
      const socket = connect(deployment.handle)
      socket.on('error', () => {})
      socket.end(bytes)
      await once(socket.resume(), 'close')
    }
    expect((await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
  })

  test('stops at SIGTERM despite an idle connection', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const outgoing = request({ socketPath: deployment.handle, path: '/health', agent }).end()
    const [response] = await once(outgoing, 'response')
    await text(response)
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: 0, signal: null })
    expect(runtime.hooks(deployment).slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })

  test('completes active requests at SIGTERM, and closes their connections', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const headers = { 'x-platform-token': runtime.token(deployment) }
    const outgoing = request({ socketPath: deployment.handle, path: '/api/calm/slow', agent, headers }).end()
    await expect.poll(() => runtime.output(deployment)).toContain('slow started')
    const ended = runtime.end(deployment, 'SIGTERM')
    const [response] = await once(outgoing, 'response')
    expect([response.headers['connection'], await text(response)]).toEqual(['close', 'slow done'])
    expect((await ended).exitCode).toBe(0)
    expect(runtime.hooks(deployment)).toContain('dispose')
  })

  test('responds to connections in the backlog at SIGTERM', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('calm'))
    runtime.signal(deployment, 'SIGSTOP')
    const sockets = Array.from({ length: 20 }, () => connect(deployment.handle))
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const head = ['GET /api/calm HTTP/1.1', 'host: module', `x-platform-token: ${runtime.token(deployment)}`]
    const responses = sockets.map((socket) => text(socket.end(`${head.join('\r\n')}\r\n\r\n`)))
    const ended = runtime.end(deployment, 'SIGTERM')
    runtime.signal(deployment, 'SIGCONT')
    // The platform repeats these requests at the next instance.
    for (const response of await Promise.all(responses))
      expect(response).toMatch(/^HTTP.1.1 503 .*\r\nx-platform-not-asked: /is)
    expect((await ended).exitCode).toBe(0)
  })

  test('exits cleanly if SIGTERM arrives when it starts to listen', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const started = program('test/support/modules/ends-as-it-listens.ts', {
      [environmentNames.socket]: `${folder.path}/m.sock`,
      [environmentNames.token]: 'x',
    })
    expect(await started.ended).toMatchObject({ exitCode: 0, signal: null })
  })

  test('exits immediately at a second signal', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('hooks hangs stop'))
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
    void runtime.end(deployment, 'SIGTERM')
    await expect.poll(() => runtime.output(deployment)).toContain('stop\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('logs an error outside of hooks and exits, so that the host restarts it', async () => {
    const started = program('test/support/modules/hooks.ts throwsLater start', {
      PORT: '0',
      [environmentNames.token]: 'x',
      [environmentNames.startsItself]: '1',
    })
    expect((await started.ended).exitCode).toBe(1)
    expect(started.text).toMatch(/"level":"error","message":"The module crashed".*"module_id":"throws-later-in-start"/)
  })

  test.for(['configureServices', 'configure', 'routes', 'start'])(
    'exits if it starts itself and %s throws',
    async (hook) => {
      const folder = await temporaryFolder()
      onTestFinished(() => folder[Symbol.asyncDispose]())
      const started = program(`test/support/modules/hooks.ts throws ${hook}`, {
        [environmentNames.socket]: `${folder.path}/m.sock`,
        [environmentNames.token]: 'x',
        [environmentNames.startsItself]: '1',
      })
      expect((await started.ended).exitCode).toBe(1)
      expect(started.text).toContain(hook === 'start' ? 'PLAT-MOD-5005' : 'PLAT-MOD-5004')
      expect(started.text).toMatch(/^dispose$/m)
    },
  )

  test('stays alive without its own start, and returns the error of configure', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('hooks throws configureServices', false))
    const response = await runtime.request(deployment, { method: 'POST', path: '/_platform/v1/configure' }, limits)
    expect([response.status, JSON.parse(textOf(response)).message]).toEqual([500, 'This module throws.'])
  })

  test('exits cleanly if it is terminated during its start', async () => {
    const runtime = moduleProcesses()
    const deployment = await runtime.deploy(deploymentSpec('hooks hangs start'))
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: 0, signal: null })
  })

  test('does not start itself if its id differs from the manifest', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const started = program('test/support/modules/other-id.ts', {
      [environmentNames.socket]: `${folder.path}/m.sock`,
      [environmentNames.token]: 'x',
      [environmentNames.startsItself]: '1',
      [environmentNames.module]: 'other-id',
    })
    await started.writes(/The module listens/)
    expect(started.text).toContain('PLAT-MOD-5001')
    expect(started.text).not.toMatch(/^configure$/m)
  })
})

describe('a module listens', () => {
  test('on a socket that a crashed instance has left', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const env = { [environmentNames.socket]: `${folder.path}/m.sock`, [environmentNames.token]: 'x' }
    const first = program('test/support/modules/calm.ts', env)
    await first.writes(/The module listens/)
    await first.kill()
    expect(existsSync(`${folder.path}/m.sock`)).toBe(true)
    const second = program('test/support/modules/calm.ts', env)
    await second.writes(/The module listens/)
  })

  test('without write permissions', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const env = { [environmentNames.socket]: `${folder.path}/m.sock`, [environmentNames.token]: 'x' }
    await program('--permission --allow-fs-read=* test/support/modules/calm.ts', env).writes(/The module listens/)
  })

  test('on HOST and PORT without a socket path', async () => {
    const env = { PORT: '0', HOST: '127.0.0.1', [environmentNames.token]: 'x' }
    const started = program('test/support/modules/calm.ts', env)
    const [, address] = await started.writes(/"address":"(127\.0\.0\.1:\d+)"/)
    const response = await fetch(`http://${address}/_platform/v1/describe`, { headers: { 'x-platform-token': 'x' } })
    expect(await response.json()).toMatchObject({ id: 'calm', state: 'Loading' })
  })

  test.for([
    ['without a token', { PORT: '0' }, 'PLATFORM_MODULE_TOKEN is not set'],
    ['on an invalid port', { PORT: 'http', [environmentNames.token]: 'x' }, 'PORT is http'],
    ['on a port that is too large', { PORT: '65536', [environmentNames.token]: 'x' }, 'PORT is 65536'],
    [
      'in a missing folder',
      { [environmentNames.socket]: 'no/such/folder/m.sock', [environmentNames.token]: 'x' },
      'm.sock',
    ],
  ] as const)('but not %s', async ([, env, reason]) => {
    const started = program('test/support/modules/calm.ts', env)
    expect((await started.ended).exitCode).toBe(1)
    expect(started.text).toContain(reason)
  })
})
