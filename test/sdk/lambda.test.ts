import { environmentNames } from '@platform/modules/protocol'
import { describe, expect, test } from 'vitest'
import { startRuntimeApi } from '../support/lambda-runtime-api.ts'
import { hooksIn } from '../support/module-process.ts'
import { Program } from '../support/program.ts'

const token = 'token-of-the-deployment'

/** An API Gateway event, payload format 2.0. */
const httpEvent = (method: string, rawPath: string, more: object = {}) => ({
  version: '2.0',
  rawPath,
  rawQueryString: '',
  headers: { 'x-platform-token': token },
  requestContext: { http: { method, path: rawPath } },
  isBase64Encoded: false,
  ...more,
})

/** Runs a module as a process with an emulated Runtime API. */
async function sandbox(main: string, args: string[] = [], settings: Record<string, string> = {}) {
  const api = await startRuntimeApi()
  const program = new Program(process.execPath, [`test/support/modules/${main}.ts`, ...args], {
    cwd: process.cwd(),
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      AWS_LAMBDA_RUNTIME_API: api.address,
      [environmentNames.token]: token,
      [environmentNames.organisation]: 'org_acme',
      ...settings,
    },
  })
  return {
    api,
    program,
    async [Symbol.asyncDispose]() {
      await program.kill()
      await api[Symbol.asyncDispose]()
    },
  }
}

describe('a module on Lambda', () => {
  test('configures itself at start, and starts before the first request', async () => {
    await using box = await sandbox('calm')
    const described = await box.api.invoke(httpEvent('GET', '/_platform/v1/describe'))
    expect(JSON.parse(described.body)).toMatchObject({ state: 'Configured', subscriptions: ['platform.job.completed'] })
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure'])
    const response = await box.api.invoke(httpEvent('GET', '/api/calm'))
    expect(JSON.parse(response.body)).toEqual({
      orgId: 'org_acme',
      module: { id: 'calm', version: '1.0.0' },
      isPersistent: false,
    })
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure', 'start'])
  })

  test('is started by the platform during installation, once', async () => {
    await using box = await sandbox('calm')
    for (const hook of ['configure', 'start', 'start']) {
      expect((await box.api.invoke(httpEvent('POST', `/_platform/v1/${hook}`))).statusCode).toBe(200)
    }
    await box.api.invoke(httpEvent('GET', '/api/calm'))
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure', 'start'])
  })

  test.for(['/_platform/v1/jobs/count', '/_platform/v1/events'])('starts itself for %s', async (path) => {
    await using box = await sandbox('calm')
    const body = path.endsWith('events') ? { body: '{"events":[]}' } : {}
    expect((await box.api.invoke(httpEvent('POST', path, body))).statusCode).toBe(200)
    await expect.poll(() => hooksIn(box.program.text)).toContain('start')
  })

  test('transfers binary and text bodies', async () => {
    await using box = await sandbox('calm')
    const bytes = Buffer.from([0, 255, 254, 10, 13, 200])
    const raw = { body: bytes.toString('base64'), isBase64Encoded: true }
    const binary = await box.api.invoke(httpEvent('POST', '/api/calm/echo', raw))
    expect(binary).toMatchObject({ statusCode: 200, isBase64Encoded: true, headers: { 'x-method': 'POST' } })
    expect(Buffer.from(binary.body, 'base64')).toEqual(bytes)
    const text = await box.api.invoke(httpEvent('PUT', '/api/calm/echo', { body: 'Grüße' }))
    expect(text).toMatchObject({ isBase64Encoded: false, body: 'Grüße', headers: { 'x-method': 'PUT' } })
  })

  test('treats the path of an event as decoded', async () => {
    await using box = await sandbox('calm')
    const { statusCode } = await box.api.invoke(httpEvent('GET', '/api/calm?x#y', { rawQueryString: 'a=b' }))
    expect(statusCode).toBe(404)
    const exact = await box.api.invoke(httpEvent('GET', '/api/calm', { rawQueryString: 'a=b' }))
    expect(exact.statusCode).toBe(200)
  })

  test('returns cookies in the format of API Gateway', async () => {
    await using box = await sandbox('sets-cookies')
    const response = await box.api.invoke(httpEvent('GET', '/api/sets-cookies'))
    expect(response.cookies).toEqual(['session=stolen; Path=/', 'other=1; Path=/api'])
    expect(Object.keys(response.headers)).not.toContain('set-cookie')
  })

  test('requires the token, except for its public health', async () => {
    await using box = await sandbox('calm')
    const headers = { headers: {} }
    expect((await box.api.invoke(httpEvent('GET', '/api/calm', headers))).statusCode).toBe(403)
    expect((await box.api.invoke(httpEvent('GET', '/health', headers))).statusCode).toBe(200)
  })

  test('rejects an event that is not a request, and continues', async () => {
    await using box = await sandbox('calm')
    for (const event of [{}, null, 'x', { rawPath: '/x' }, { rawPath: '/x', requestContext: {} }]) {
      await expect(box.api.invoke(event)).rejects.toMatchObject({ errorType: 'InvalidEvent', header: 'InvalidEvent' })
    }
    expect((await box.api.invoke(httpEvent('GET', '/api/calm'))).statusCode).toBe(200)
  })

  test('returns 502 for a response that exceeds the payload limit', async () => {
    await using box = await sandbox('large-response')
    const response = await box.api.invoke(httpEvent('GET', '/api/large-response'))
    expect([response.statusCode, JSON.parse(response.body).error]).toEqual([502, 'answer_too_large'])
  })

  test('stays alive while it waits', async () => {
    await using box = await sandbox('hooks', ['hangs', 'start'])
    const headers = { 'x-platform-token': token, 'x-platform-grace-ms': '300' }
    const { statusCode } = await box.api.invoke(httpEvent('POST', '/_platform/v1/start', { headers }))
    expect(statusCode).toBe(504)
  })

  test('stops and disposes of itself at SIGTERM', async () => {
    await using box = await sandbox('calm')
    await box.api.invoke(httpEvent('GET', '/api/calm'))
    box.program.signal('SIGTERM')
    expect(await box.program.ended).toEqual({ exitCode: 0, signal: null })
    expect(hooksIn(box.program.text).slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })
})

describe('a module on Lambda that fails to initialize', () => {
  test.for(['configureServices', 'configure', 'routes'])('reports an error in %s to Lambda', async (hook) => {
    await using box = await sandbox('hooks', ['throws', hook])
    expect(await box.api.initError).toEqual({
      errorType: 'PLAT-MOD-5004',
      errorMessage: 'This module throws.',
      stackTrace: [],
      header: 'PLAT-MOD-5004',
    })
    expect((await box.program.ended).exitCode).toBe(1)
    expect(box.api.countPolls()).toBe(0)
  })

  test('is not configured if its id differs from the manifest, but can be described', async () => {
    await using box = await sandbox('other-id', [], { [environmentNames.module]: 'other-id' })
    const { body } = await box.api.invoke(httpEvent('GET', '/_platform/v1/describe'))
    expect(JSON.parse(body)).toMatchObject({ id: 'quite-another', state: 'Loading' })
    expect((await box.api.invoke(httpEvent('GET', '/api/other-id'))).statusCode).toBe(503)
    expect(box.program.text).toContain('PLAT-MOD-5001')
    expect(box.program.text).not.toMatch(/^configure$/m)
  })
})
