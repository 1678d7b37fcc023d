import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { environmentNames } from '@platform/modules/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fixture } from '../support/author.ts'
import { ModuleProcesses } from '../support/module-process.ts'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const assignment = (main: string, startsItself = true) => ({
  id: main.replaceAll(' ', '-'),
  moduleId: main,
  version: '1.0.0',
  repository: fixture(main),
  digest: 'sha256:0',
  organisationId: 'org_acme',
  startsItself,
})

const limits = { timeoutMs: 10_000, maxBytes: 1_000_000 }

function processes(): ModuleProcesses {
  const runtime = new ModuleProcesses()
  onTestFinished(() => runtime[Symbol.asyncDispose]())
  return runtime
}

const textOf = (answer: { body: Uint8Array }): string => Buffer.from(answer.body).toString()

/** A module by itself, with an environment of the test's own. */
function program(main: string, env: Record<string, string>): Program {
  const started = new Program(process.execPath, main.split(' '), {
    cwd: process.cwd(),
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
  })
  onTestFinished(() => started.kill())
  return started
}

describe('a module as a process', () => {
  test('starts itself where it is told to, and answers', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    const answer = await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)
    expect(JSON.parse(textOf(answer))).toEqual({
      orgId: 'org_acme',
      module: { id: 'calm', version: '1.0.0' },
      isPersistent: true,
    })
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
  })

  test('waits for the platform where it is not told to', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm', false))
    expect((await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(503)
    expect(runtime.hooks(deployment)).toEqual(['configureServices'])
  })

  test('carries bytes both ways', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
    const answer = await runtime.request(deployment, { method: 'POST', path: '/api/calm/echo', body }, limits)
    expect(Buffer.from(answer.body).equals(body)).toBe(true)
  })

  test('refuses a body that is larger than any that the platform lets through, and lives on', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    const echo = { method: 'POST', path: '/api/calm/echo', body: Buffer.alloc(8 * 1024 * 1024 + 1) }
    expect((await runtime.request(deployment, echo, limits)).status).toBe(413)
    expect((await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
  })

  test('lives on after requests that are none', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
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

  test('SIGTERM lets it stop, dispose of itself and end, although a client keeps its connection', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const asked = request({ socketPath: deployment.handle, path: '/health', agent }).end()
    const [answer] = await once(asked, 'response')
    await text(answer)
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: 0, signal: null })
    expect(runtime.hooks(deployment).slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })

  test('SIGTERM lets requests end that are under way, and their connections with them', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    const agent = new Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const headers = { 'x-platform-token': runtime.token(deployment) }
    const asked = request({ socketPath: deployment.handle, path: '/api/calm/slow', agent, headers }).end()
    await expect.poll(() => runtime.output(deployment)).toContain('slow begun')
    const ended = runtime.end(deployment, 'SIGTERM')
    const [answer] = await once(asked, 'response')
    expect([answer.headers['connection'], await text(answer)]).toEqual(['close', 'slow done'])
    expect((await ended).exitCode).toBe(0)
    expect(runtime.hooks(deployment)).toContain('dispose')
  })

  test('SIGTERM leaves no request without an answer whose connection was not even taken yet', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('calm'))
    runtime.signal(deployment, 'SIGSTOP')
    const sockets = Array.from({ length: 20 }, () => connect(deployment.handle))
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const head = ['GET /api/calm HTTP/1.1', 'host: module', `x-platform-token: ${runtime.token(deployment)}`]
    const answers = sockets.map((socket) => text(socket.end(`${head.join('\r\n')}\r\n\r\n`)))
    const ended = runtime.end(deployment, 'SIGTERM')
    runtime.signal(deployment, 'SIGCONT')
    // They came after the signal: the platform asks the successor, for this one has not been asked.
    for (const answer of await Promise.all(answers))
      expect(answer).toMatch(/^HTTP.1.1 503 .*\r\nx-platform-not-asked: /is)
    expect((await ended).exitCode).toBe(0)
  })

  test('one that is told to end in the moment in which it can be reached ends well', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const started = program('test/support/modules/ends-as-it-listens.ts', {
      [environmentNames.socket]: `${folder.path}/m.sock`,
      [environmentNames.token]: 'x',
    })
    expect(await started.ended).toMatchObject({ exitCode: 0, signal: null })
  })

  test('a second signal ends a module at once that does not stop', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('hooks hangs stop'))
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
    void runtime.end(deployment, 'SIGTERM')
    await expect.poll(() => runtime.output(deployment)).toContain('stop\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('what is thrown outside of any hook is logged and ends the process, so that the host restarts it', async () => {
    const started = program('test/support/modules/hooks.ts throwsLater start', {
      PORT: '0',
      [environmentNames.token]: 'x',
      [environmentNames.startsItself]: '1',
    })
    expect((await started.ended).exitCode).toBe(1)
    expect(started.text).toMatch(/"level":"error","message":"The module crashed".*"module_id":"throws-later-in-start"/)
  })

  test.for(['configureServices', 'configure', 'routes', 'start'])(
    'one that starts itself and whose %s throws ends, so that the host restarts it',
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

  test('one that does not start itself lives on to say why it cannot be configured', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('hooks throws configureServices', false))
    const answer = await runtime.request(deployment, { method: 'POST', path: '/_platform/v1/configure' }, limits)
    expect([answer.status, JSON.parse(textOf(answer)).message]).toEqual([500, 'This module throws.'])
  })

  test('one that is told to end while it starts itself ends well', async () => {
    const runtime = processes()
    const deployment = await runtime.deploy(assignment('hooks hangs start'))
    await expect.poll(() => runtime.output(deployment)).toContain('start\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: 0, signal: null })
  })

  test('one whose id is not that of its manifest never starts itself', async () => {
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

describe('where a module listens', () => {
  test('a socket that a crashed instance left behind is taken over', async () => {
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

  test('a module that may write nowhere listens all the same', async () => {
    const folder = await temporaryFolder()
    onTestFinished(() => folder[Symbol.asyncDispose]())
    const env = { [environmentNames.socket]: `${folder.path}/m.sock`, [environmentNames.token]: 'x' }
    await program('--permission --allow-fs-read=* test/support/modules/calm.ts', env).writes(/The module listens/)
  })

  test('on HOST and PORT where there is no socket', async () => {
    const env = { PORT: '0', HOST: '127.0.0.1', [environmentNames.token]: 'x' }
    const started = program('test/support/modules/calm.ts', env)
    const [, address] = await started.writes(/"address":"(127\.0\.0\.1:\d+)"/)
    const response = await fetch(`http://${address}/_platform/v1/describe`, { headers: { 'x-platform-token': 'x' } })
    expect(await response.json()).toMatchObject({ id: 'calm', state: 'Loading' })
  })

  test.for([
    ['without a token', { PORT: '0' }, 'PLATFORM_MODULE_TOKEN is not set'],
    ['on a port that is none', { PORT: 'http', [environmentNames.token]: 'x' }, 'PORT is http'],
    ['on a port that is too large', { PORT: '65536', [environmentNames.token]: 'x' }, 'PORT is 65536'],
    [
      'in a folder that is not there',
      { [environmentNames.socket]: 'no/such/folder/m.sock', [environmentNames.token]: 'x' },
      'm.sock',
    ],
  ] as const)('%s it ends and says so', async ([, env, said]) => {
    const started = program('test/support/modules/calm.ts', env)
    expect((await started.ended).exitCode).toBe(1)
    expect(started.text).toContain(said)
  })
})
