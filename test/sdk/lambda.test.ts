import { environmentNames } from '@platform/modules/protocol'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRuntimeApi } from '../support/lambda-runtime-api.ts'
import { hooksIn } from '../support/module-process.ts'
import { Program } from '../support/program.ts'

const token = 'token-of-the-deployment'

const httpEvent = (method: string, rawPath: string, members: object = {}) => ({
  version: '2.0',
  rawPath,
  rawQueryString: '',
  headers: { 'x-platform-token': token },
  requestContext: { http: { method, path: rawPath } },
  isBase64Encoded: false,
  ...members,
})

async function sandbox(main: string, args: string[] = [], settings: Record<string, string> = {}) {
  const api = await startRuntimeApi()
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const names = { [environmentNames.token]: token, [environmentNames.organisation]: 'org_acme' }
  const program = new Program(process.execPath, [`test/support/modules/${main}.ts`, ...args], {
    cwd: process.cwd(),
    env: { PATH, NODE_COMPILE_CACHE, AWS_LAMBDA_RUNTIME_API: api.address, ...names, ...settings },
  })
  onTestFinished(async () => {
    await program.kill()
    await api[Symbol.asyncDispose]()
  })
  const send = (method: string, path: string, members?: object) => api.invoke(httpEvent(method, path, members))
  const hooks = () => hooksIn(program.text)
  return { api, program, send, hooks }
}

describe('a module on Lambda', () => {
  test('configures itself at start, starts before the first request, and stops at SIGTERM', async () => {
    const { program, send, hooks } = await sandbox('calm')
    const description = JSON.parse((await send('GET', '/_platform/v1/describe')).body)
    expect(description).toMatchObject({ state: 'Configured', subscriptions: ['platform.job.completed'] })
    await expect.poll(hooks).toEqual(['configureServices', 'configure'])
    const context = { orgId: 'org_acme', module: { id: 'calm', version: '1.0.0' }, isPersistent: false }
    expect(JSON.parse((await send('GET', '/api/calm')).body)).toEqual(context)
    await expect.poll(hooks).toEqual(['configureServices', 'configure', 'start'])
    program.signal('SIGTERM')
    expect(await program.ended).toEqual({ exitCode: 0, signal: null })
    expect(hooks().slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })

  test('is started by the platform during installation, once', async () => {
    const { send, hooks } = await sandbox('calm')
    for (const hook of ['configure', 'start', 'start'])
      expect((await send('POST', `/_platform/v1/${hook}`)).statusCode).toBe(200)
    await send('GET', '/api/calm')
    await expect.poll(hooks).toEqual(['configureServices', 'configure', 'start'])
  })

  test.for([
    ['/_platform/v1/jobs/count', {}],
    ['/_platform/v1/events', { body: '{"events":[]}' }],
  ] as const)('starts itself for %s', async ([path, body]) => {
    const { send, hooks } = await sandbox('calm')
    expect((await send('POST', path, body)).statusCode).toBe(200)
    await expect.poll(hooks).toContain('start')
  })

  test('converts bodies, paths and tokens of events, and continues after events that are not requests', async () => {
    const { api, send } = await sandbox('calm')
    const bytes = Buffer.from([0, 255, 254, 10, 13, 200])
    const raw = { body: bytes.toString('base64'), isBase64Encoded: true }
    const binary = await send('POST', '/api/calm/echo', raw)
    expect(binary).toMatchObject({ statusCode: 200, isBase64Encoded: true, headers: { 'x-method': 'POST' } })
    expect(Buffer.from(binary.body, 'base64')).toEqual(bytes)
    const text = await send('PUT', '/api/calm/echo', { body: 'Grüße' })
    expect(text).toMatchObject({ isBase64Encoded: false, body: 'Grüße', headers: { 'x-method': 'PUT' } })
    // API Gateway has decoded the path of an event, so `?` and `#` in it belong to the path.
    expect((await send('GET', '/api/calm?x#y', { rawQueryString: 'a=b' })).statusCode).toBe(404)
    expect((await send('GET', '/api/calm', { headers: {} })).statusCode).toBe(403)
    expect((await send('GET', '/health', { headers: {} })).statusCode).toBe(200)
    for (const event of [{}, null, 'x', { rawPath: '/x' }, { rawPath: '/x', requestContext: {} }]) {
      await expect(api.invoke(event)).rejects.toMatchObject({ errorType: 'InvalidEvent', header: 'InvalidEvent' })
    }
    expect((await send('GET', '/api/calm', { rawQueryString: 'a=b' })).statusCode).toBe(200)
  })

  test('returns cookies in the format of API Gateway', async () => {
    const { send } = await sandbox('sets-cookies')
    const response = await send('GET', '/api/sets-cookies')
    expect(response.cookies).toEqual(['session=stolen; Path=/', 'other=1; Path=/api'])
    expect(Object.keys(response.headers)).not.toContain('set-cookie')
  })

  test('returns 502 for a response that exceeds the payload limit', async () => {
    const { send } = await sandbox('large-response')
    const response = await send('GET', '/api/large-response')
    expect([response.statusCode, JSON.parse(response.body).error]).toEqual([502, 'answer_too_large'])
  })

  test('keeps running while a hook is pending, and returns 504 at its time limit', async () => {
    const { send } = await sandbox('hooks', ['hangs', 'start'])
    const headers = { 'x-platform-token': token, 'x-platform-grace-ms': '300' }
    expect((await send('POST', '/_platform/v1/start', { headers })).statusCode).toBe(504)
  })
})

describe('a module on Lambda that fails to initialize', () => {
  test('reports an error in configure to Lambda', async () => {
    const { api, program } = await sandbox('hooks', ['throws', 'configure'])
    expect(await api.initError).toEqual({
      errorType: 'PLAT-MOD-5004',
      errorMessage: 'This module throws.',
      stackTrace: [],
      header: 'PLAT-MOD-5004',
    })
    expect((await program.ended).exitCode).toBe(1)
    expect(api.countPolls()).toBe(0)
  })

  test('is not configured if its id differs from the manifest, but can be described', async () => {
    const { program, send } = await sandbox('other-id', [], { [environmentNames.module]: 'other-id' })
    const { body } = await send('GET', '/_platform/v1/describe')
    expect(JSON.parse(body)).toMatchObject({ id: 'quite-another', state: 'Loading' })
    expect((await send('GET', '/api/other-id')).statusCode).toBe(503)
    expect(program.text).toContain('PLAT-MOD-5001')
    expect(program.text).not.toMatch(/^configure$/m)
  })
})
