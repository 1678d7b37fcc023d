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

const limits = { timeoutMs: 10_000, maxBytes: 1_000_000 }
const token = { [environmentNames.token]: 'x' }
const startsItself = { [environmentNames.startsItself]: '1' }

async function deploy(main: string, startsItself = true) {
  const runtime = moduleProcesses()
  const deployment = await runtime.deploy({
    id: main.replaceAll(' ', '-'),
    moduleId: main,
    version: '1.0.0',
    repository: fixture(main),
    digest: 'sha256:0',
    organisationId: 'org_acme',
    startsItself,
    mayRunAsProcess: false,
  })
  const send = async (method: string, path: string, body?: Buffer) => {
    const response = await runtime.request(deployment, { method, path, ...(body && { body }) }, limits)
    return { status: response.status, body: Buffer.from(response.body) }
  }
  const agent = new Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  const sendAndKeep = async (path: string) => {
    const headers = { 'x-platform-token': runtime.token(deployment) }
    const outgoing = request({ socketPath: deployment.handle, path, agent, headers }).end()
    const [response] = await once(outgoing, 'response')
    return { connection: response.headers['connection'], body: await text(response) }
  }
  const output = () => runtime.output(deployment)
  return { runtime, deployment, send, sendAndKeep, output }
}

function program(main: string, env: Record<string, string>, nodeOptions: string[] = []): Program {
  const args = main.replace(/\S+/, 'test/support/modules/$&.ts').split(' ')
  const started = new Program(process.execPath, [...nodeOptions, ...args], {
    cwd: process.cwd(),
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'], ...env },
  })
  onTestFinished(() => started.kill())
  return started
}

async function socketEnv() {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return { [environmentNames.socket]: `${folder.path}/m.sock`, ...token }
}

describe('a module process', () => {
  test('starts itself if configured, and continues after large and invalid requests', async () => {
    const { deployment, send, output } = await deploy('calm')
    const context = { orgId: 'org_acme', module: { id: 'calm', version: '1.0.0' }, isPersistent: true }
    expect(JSON.parse((await send('GET', '/api/calm')).body.toString())).toEqual(context)
    await expect.poll(output).toContain('start\n')
    const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256))
    expect((await send('POST', '/api/calm/echo', body)).body.equals(body)).toBe(true)
    expect((await send('POST', '/api/calm/echo', Buffer.alloc(8 * 2 ** 20 + 1))).status).toBe(413)
    for (const bytes of [
      '\0\0\0',
      'GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n',
      'POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nx',
    ]) {
      const socket = connect(deployment.handle).on('error', () => {})
      socket.end(bytes)
      await once(socket.resume(), 'close')
    }
    expect((await send('GET', '/api/calm')).status).toBe(200)
  })

  test('completes active requests at SIGTERM, and closes their and idle connections', async () => {
    const { runtime, deployment, sendAndKeep, output } = await deploy('calm')
    await sendAndKeep('/health')
    const slowResponse = sendAndKeep('/api/calm/slow')
    const idleResponse = sendAndKeep('/health')
    await Promise.all([expect.poll(output).toContain('slow started'), idleResponse])
    const ending = runtime.end(deployment, 'SIGTERM')
    expect(await slowResponse).toEqual({ connection: 'close', body: 'slow done' })
    expect(await ending).toEqual({ exitCode: 0, signal: null })
    expect(runtime.hooks(deployment).slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })

  test('responds to connections in the backlog at SIGTERM', async () => {
    const { runtime, deployment } = await deploy('calm')
    runtime.signal(deployment, 'SIGSTOP')
    const sockets = Array.from({ length: 20 }, () => connect(deployment.handle))
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    const head = ['GET /api/calm HTTP/1.1', 'host: module', `x-platform-token: ${runtime.token(deployment)}`]
    const responses = sockets.map((socket) => text(socket.end(`${head.join('\r\n')}\r\n\r\n`)))
    const ending = runtime.end(deployment, 'SIGTERM')
    runtime.signal(deployment, 'SIGCONT')
    // The process may accept some connections before it stops. The platform sends the other requests again to the next
    // instance.
    for (const response of await Promise.all(responses))
      expect(response).toMatch(/^HTTP.1.1 (?:200 |503 .*\r\nx-platform-not-asked: )/is)
    expect((await ending).exitCode).toBe(0)
  })

  test('exits cleanly if SIGTERM arrives when it starts to listen, or during its start', async () => {
    const module = program('ends-on-listen', await socketEnv())
    expect(await module.ended).toEqual({ exitCode: 0, signal: null })
    const { runtime, deployment, output } = await deploy('hooks hangs start')
    await expect.poll(output).toContain('start\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: 0, signal: null })
  })

  test('exits at once at a second signal', async () => {
    const { runtime, deployment, output } = await deploy('hooks hangs stop')
    await expect.poll(output).toContain('start\n')
    void runtime.end(deployment, 'SIGTERM')
    await expect.poll(output).toContain('stop\n')
    expect(await runtime.end(deployment, 'SIGTERM')).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  test('logs an error outside of hooks and exits, so that the host restarts it', async () => {
    const module = program('hooks throwsLater start', { PORT: '0', ...token, ...startsItself })
    expect((await module.ended).exitCode).toBe(1)
    expect(module.text).toMatch(/"level":"error","message":"The module crashed".*"module_id":"throws-later-in-start"/)
  })

  test.for(['configure', 'start'])('exits if it starts itself and %s throws', async (hook) => {
    const module = program(`hooks throws ${hook}`, { ...(await socketEnv()), ...startsItself })
    expect((await module.ended).exitCode).toBe(1)
    expect(module.text).toContain(hook === 'start' ? 'PLAT-MOD-5005' : 'PLAT-MOD-5004')
    expect(module.text).toMatch(/^dispose$/m)
  })

  test('waits for the platform if it does not start itself, and returns the error of configure', async () => {
    const { send } = await deploy('hooks throws configureServices', false)
    expect((await send('GET', '/api/any')).status).toBe(503)
    const { status, body } = await send('POST', '/_platform/v1/configure')
    expect([status, JSON.parse(body.toString()).message]).toEqual([500, 'This module throws.'])
  })

  test('does not start itself if its id differs from the manifest', async () => {
    const module = program('other-id', {
      ...(await socketEnv()),
      ...startsItself,
      [environmentNames.module]: 'other-id',
    })
    await module.writes(/The module listens/)
    expect(module.text).toContain('PLAT-MOD-5001')
    expect(module.text).not.toMatch(/^configure$/m)
  })

  test('listens on the socket of a crashed instance, and without write permissions', async () => {
    const env = await socketEnv()
    const crashedModule = program('calm', env)
    await crashedModule.writes(/The module listens/)
    await crashedModule.kill()
    expect(existsSync(env[environmentNames.socket])).toBe(true)
    await program('calm', env).writes(/The module listens/)
    const readOnly = program('calm', await socketEnv(), ['--permission', '--allow-fs-read=*'])
    await readOnly.writes(/The module listens/)
  })

  test('listens on HOST and PORT without a socket path', async () => {
    const module = program('calm', { PORT: '0', HOST: '127.0.0.1', ...token })
    const [, address] = await module.writes(/"address":"(127\.0\.0\.1:\d+)"/)
    const response = await fetch(`http://${address}/_platform/v1/describe`, { headers: { 'x-platform-token': 'x' } })
    expect(await response.json()).toMatchObject({ id: 'calm', state: 'Loading' })
  })

  test.for([
    ['without a token', { PORT: '0' }, 'PLATFORM_MODULE_TOKEN is not set'],
    ['on an invalid port', { PORT: 'http', ...token }, 'PORT is http'],
    ['on a port that is too large', { PORT: '65536', ...token }, 'PORT is 65536'],
    ['in a missing folder', { [environmentNames.socket]: 'no/such/folder/m.sock', ...token }, 'm.sock'],
  ] as const)('does not listen %s', async ([, env, reason]) => {
    const module = program('calm', env)
    expect((await module.ended).exitCode).toBe(1)
    expect(module.text).toContain(reason)
  })
})
