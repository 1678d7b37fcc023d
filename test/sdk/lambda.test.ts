import { environmentNames } from '@platform/modules/protocol'
import { describe, expect, test } from 'vitest'
import { LambdaRuntimeApi } from '../support/lambda-runtime-api.ts'
import { hooksIn } from '../support/module-process.ts'
import { Program } from '../support/program.ts'

const token = 'token-of-the-deployment'

/** An event of API Gateway, format 2.0, as the platform's adapter makes it. */
const httpEvent = (method: string, rawPath: string, more: object = {}) => ({
  version: '2.0',
  rawPath,
  rawQueryString: '',
  headers: { 'x-platform-token': token },
  requestContext: { http: { method, path: rawPath } },
  isBase64Encoded: false,
  ...more,
})

/** A module in a sandbox: a process that knows the Runtime API and nothing else. */
async function sandbox(main: string, args: string[] = [], settings: Record<string, string> = {}) {
  const api = await LambdaRuntimeApi.start()
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
  test('configures itself before it takes events, and starts itself before the first that is not about itself', async () => {
    await using box = await sandbox('calm')
    const described = await box.api.invoke(httpEvent('GET', '/_platform/v1/describe'))
    expect(JSON.parse(described.body)).toMatchObject({ state: 'Configured', subscriptions: ['platform.job.completed'] })
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure'])
    const answer = await box.api.invoke(httpEvent('GET', '/api/calm'))
    expect(JSON.parse(answer.body)).toEqual({
      orgId: 'org_acme',
      module: { id: 'calm', version: '1.0.0' },
      isPersistent: false,
    })
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure', 'start'])
  })

  test('waits for the platform’s start while it is installed, and starts once', async () => {
    await using box = await sandbox('calm')
    for (const hook of ['configure', 'start', 'start']) {
      expect((await box.api.invoke(httpEvent('POST', `/_platform/v1/${hook}`))).statusCode).toBe(200)
    }
    await box.api.invoke(httpEvent('GET', '/api/calm'))
    await expect.poll(() => hooksIn(box.program.text)).toEqual(['configureServices', 'configure', 'start'])
  })

  test.for(['/_platform/v1/jobs/count', '/_platform/v1/events'])('a new sandbox starts itself for %s', async (path) => {
    await using box = await sandbox('calm')
    const body = path.endsWith('events') ? { body: '{"events":[]}' } : {}
    expect((await box.api.invoke(httpEvent('POST', path, body))).statusCode).toBe(200)
    await expect.poll(() => hooksIn(box.program.text)).toContain('start')
  })

  test('carries bytes both ways, whatever they are', async () => {
    await using box = await sandbox('calm')
    const bytes = Buffer.from([0, 255, 254, 10, 13, 200])
    const raw = { body: bytes.toString('base64'), isBase64Encoded: true }
    const binary = await box.api.invoke(httpEvent('POST', '/api/calm/echo', raw))
    expect(binary).toMatchObject({ statusCode: 200, isBase64Encoded: true, headers: { 'x-method': 'POST' } })
    expect(Buffer.from(binary.body, 'base64')).toEqual(bytes)
    const text = await box.api.invoke(httpEvent('PUT', '/api/calm/echo', { body: 'Grüße' }))
    expect(text).toMatchObject({ isBase64Encoded: false, body: 'Grüße', headers: { 'x-method': 'PUT' } })
  })

  test('takes the decoded path of an event for what it is', async () => {
    await using box = await sandbox('calm')
    const { statusCode } = await box.api.invoke(httpEvent('GET', '/api/calm?x#y', { rawQueryString: 'a=b' }))
    expect(statusCode).toBe(404)
    const found = await box.api.invoke(httpEvent('GET', '/api/calm', { rawQueryString: 'a=b' }))
    expect(found.statusCode).toBe(200)
  })

  test('tells cookies as the format wants them', async () => {
    await using box = await sandbox('sets-cookies')
    const answer = await box.api.invoke(httpEvent('GET', '/api/sets-cookies'))
    expect(answer.cookies).toEqual(['session=stolen; Path=/', 'other=1; Path=/api'])
    expect(Object.keys(answer.headers)).not.toContain('set-cookie')
  })

  test('answers 403 without the token, and 200 for its public health', async () => {
    await using box = await sandbox('calm')
    const headers = { headers: {} }
    expect((await box.api.invoke(httpEvent('GET', '/api/calm', headers))).statusCode).toBe(403)
    expect((await box.api.invoke(httpEvent('GET', '/health', headers))).statusCode).toBe(200)
  })

  test('refuses an event that is no request, and lives on', async () => {
    await using box = await sandbox('calm')
    for (const event of [{}, null, 'x', { rawPath: '/x' }, { rawPath: '/x', requestContext: {} }]) {
      await expect(box.api.invoke(event)).rejects.toMatchObject({ errorType: 'InvalidEvent', header: 'InvalidEvent' })
    }
    expect((await box.api.invoke(httpEvent('GET', '/api/calm'))).statusCode).toBe(200)
  })

  test('tells an answer that Lambda would not carry', async () => {
    await using box = await sandbox('large-answer')
    const answer = await box.api.invoke(httpEvent('GET', '/api/large-answer'))
    expect([answer.statusCode, JSON.parse(answer.body).error]).toEqual([502, 'answer_too_large'])
  })

  test('lives while it waits, as an idle sandbox has to', async () => {
    await using box = await sandbox('hooks', ['hangs', 'start'])
    const headers = { 'x-platform-token': token, 'x-platform-grace-ms': '300' }
    const { statusCode } = await box.api.invoke(httpEvent('POST', '/_platform/v1/start', { headers }))
    expect(statusCode).toBe(504)
  })

  test('stops and disposes of itself at SIGTERM', async () => {
    await using box = await sandbox('calm')
    await box.api.invoke(httpEvent('GET', '/api/calm'))
    box.program.terminate()
    expect(await box.program.ended).toEqual({ exitCode: 0, signal: null })
    expect(hooksIn(box.program.text).slice(-3)).toEqual(['stop', 'dispose', 'disposables'])
  })
})

describe('a module that cannot begin on Lambda', () => {
  test.for(['configureServices', 'configure', 'routes'])('because %s throws tells Lambda why', async (hook) => {
    await using box = await sandbox('hooks', ['throws', hook])
    expect(await box.api.initError).toEqual({
      errorType: 'PLAT-MOD-5004',
      errorMessage: 'This module throws.',
      stackTrace: [],
      header: 'PLAT-MOD-5004',
    })
    expect((await box.program.ended).exitCode).toBe(1)
    expect(box.api.asked).toBe(0)
  })

  test('because its id is not that of its manifest is never configured, and can be asked for its id', async () => {
    await using box = await sandbox('other-id', [], { [environmentNames.module]: 'other-id' })
    const { body } = await box.api.invoke(httpEvent('GET', '/_platform/v1/describe'))
    expect(JSON.parse(body)).toMatchObject({ id: 'quite-another', state: 'Loading' })
    expect((await box.api.invoke(httpEvent('GET', '/api/other-id'))).statusCode).toBe(503)
    expect(box.program.text).toContain('PLAT-MOD-5001')
    expect(box.program.text).not.toMatch(/^configure$/m)
  })
})
