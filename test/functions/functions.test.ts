import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { docsPage } from '@platform/contract/docs'
import { eventCatalog } from '@platform/contract/event-catalog'
import { filesByFunction, routes } from '@platform/contract/index'
import { manifestJsonSchema } from '@platform/contract/manifest'
import document from '@platform/contract/openapi.json' with { type: 'json' }
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'
import { config } from '@platform/core/config'
import { newId } from '@platform/core/id'
import { version } from '@platform/core/lib/version'
import { apiFunctions, functionNames } from '@platform/core/updates/function-names'
import { probeEvent } from '@platform/core/updates/version-probe'
import { packFiles } from '@platform/http/portal/pack'
import { getEvent, readinessRequest, smokeRequests } from '@platform/worker/updates/smoke'
import { afterAll, expect, test, vi } from 'vitest'
import { handler as bootstrap } from '../../functions/bootstrap.ts'
import { advanceClock } from '../support/clock.ts'
import * as fixtures from '../support/fixtures.ts'
import { captureLog } from '../support/log.ts'
import { jsonRequest, send } from '../support/request.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { handlerOf, operationNamed, operations, requestTo } from './operations.ts'
import { writes } from './writes.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1' }))
await vi.hoisted(() => import('../support/without-rate-limits.ts'))

const folder = new URL('../../functions/', import.meta.url)
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
const importHandler = async (name: string) => (await import(new URL(`${name}.ts`, folder).href)).handler

const assetsDir = mkdtempSync(join(tmpdir(), 'assets-'))
config.PLAT_ASSETS_DIR = assetsDir
afterAll(() => rmSync(assetsDir, { recursive: true }))

const call = (name: string, headers: Record<string, string> = {}) => {
  const { handler, method } = operationNamed(name)
  return send(handler, { method, target: name.split(' ')[1] ?? '', headers })
}

test('is live before bootstrap, and ready only afterwards', async () => {
  expect(await call('GET /health/live')).toMatchObject({ status: 200, json: { status: 'ok' } })
  for (const name of ['GET /health/ready', 'GET /health/startup']) {
    const headers = { 'retry-after': '2' }
    expect(await call(name)).toMatchObject({ status: 503, json: { status: 'unavailable' }, headers })
  }
  await bootstrap()
  for (const name of ['GET /health/ready', 'GET /health/startup']) {
    expect(await call(name)).toMatchObject({ status: 200, json: { status: 'ok' } })
  }
})

test('every function of the contract is a file, and every file a function', () => {
  const names = [...Object.keys(filesByFunction), modulePaths.function, fallback.function, ...Object.keys(tasks)]
  expect(files.toSorted()).toEqual(names.toSorted())
  expect(functionNames.toSorted()).toEqual(names.toSorted())
})

test.each(Object.keys(filesByFunction))('%s serves exactly its operations of the contract', (name) => {
  const source = readFileSync(new URL(`${name}.ts`, folder), 'utf8')
  const servedOperations = [...source.matchAll(/\broute\(\s*(\w+)/g)].map(([, operationId]) => String(operationId))
  const expected = routes.filter((route) => route.function === name).map(({ operationId }) => operationId)
  expect(servedOperations.toSorted()).toEqual(expected.toSorted())
})

test.each(operations)('$name is routed', async (operation) => {
  const { status, json } = await send(operation.handler, requestTo(operation))
  expect([status, json?.error]).not.toEqual([404, 'route_not_found'])
})

test.each(files)('%s responds to a probe with its version only', async (name) => {
  const handler = await importHandler(name)
  let response: unknown
  const calls = await countStoreCalls(async () => {
    expect(await captureLog(async () => (response = await handler(probeEvent)))).toEqual([])
  })
  expect([response, calls]).toEqual([{ version }, 0])
})

test('callers cannot send a probe', async () => {
  const headers = { 'content-type': 'application/json', platformprobe: 'true' }
  const body = JSON.stringify(probeEvent)
  const probe = { method: 'POST', target: '/api/v1/clusters?platformProbe=true', headers, body }
  expect((await send(handlerOf('clusters'), probe)).status).toBe(401)
  const consume = await importHandler('queue/batches')
  expect(await consume({ Records: [], ...probeEvent })).toEqual({ batchItemFailures: [] })
  const http = { method: 'GET', sourceIp: '192.0.2.1' }
  const event = { rawPath: '/health/live', rawQueryString: '', headers: {}, isBase64Encoded: false }
  const request = Object.assign({ ...event, requestContext: { http } }, probeEvent)
  expect(await handlerOf('health')(request)).toMatchObject({ statusCode: 200 })
})

test('every API function has a smoke request', () => {
  expect(smokeRequests.map(({ functionName }) => functionName).toSorted()).toEqual(apiFunctions.toSorted())
})

test.each(smokeRequests)(
  '$functionName passes its smoke request without a write',
  async ({ functionName, path, status }) => {
    const bodies = { identity: Buffer.from('<!doctype html>') }
    const shell = { contentType: 'text/html', isHashed: false, tag: 'page', bodies }
    writeFileSync(join(assetsDir, 'portal.pack'), packFiles({ shell, files: new Map() }))
    const handler = await importHandler(functionName)
    const writesBefore = writes()
    const { statusCode } = await handler(getEvent(path))
    expect(writes()).toBe(writesBefore)
    if (status === undefined) expect(statusCode).toBeLessThan(500)
    else expect(statusCode).toBe(status)
  },
)

test('the smoke request for readiness reads the store', async () => {
  const handler = await importHandler(readinessRequest.functionName)
  expect(await countStoreCalls(() => handler(getEvent(readinessRequest.path)))).toBeGreaterThan(0)
})

const json = 'application/json'
test.each([
  ['/api/v1/openapi.json', 'openapi.json', JSON.stringify(document, null, 2), json],
  ['/schemas/module/v1.json', 'module-schema.json', JSON.stringify(manifestJsonSchema()), json],
  ['/docs', 'docs.html', docsPage(document), 'text/html; charset=utf-8'],
  ['/relay/relay.mjs', 'relay.mjs', '// grüße\nexport {}\n', 'text/javascript; charset=utf-8'],
  ['/api/v1/events/catalog', 'event-catalog.json', JSON.stringify(eventCatalog()), json],
])('%s returns 500 while its file is missing, and the file once it is built', async (path, name, text, type) => {
  const viewer = await fixtures.bearer(['Viewer'])
  await captureLog(async () => expect((await call(`GET ${path}`, viewer)).status).toBe(500))
  writeFileSync(join(assetsDir, name), text)
  const response = await call(`GET ${path}`, viewer)
  const cacheControl = `${name === 'event-catalog.json' ? 'private' : 'public'}, max-age=60`
  const { status, headers } = response
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, cacheControl])
  if (type === json) expect(JSON.parse(response.text)).toEqual(JSON.parse(text))
  else expect(response.text).toBe(text)
})

let platform: fixtures.SignedInUser

test('the portal configuration is public, cached for a minute, and reflects a completed setup', async () => {
  const read = () => call('GET /api/v1/portal/configuration')
  expect((await read()).json).toEqual({ setupComplete: false, version })
  platform = await fixtures.setUpPlatform()
  const { platformName, publicUrl, timezone } = fixtures.administrator
  expect((await read()).json).toEqual({ setupComplete: true, platformName, publicUrl, timezone, version })
  advanceClock(60_000)
  expect([await countStoreCalls(read), await countStoreCalls(read)]).toEqual([1, 0])
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const asAdministrator = (method: string, target: string, body: object = {}) =>
  send(handlerOf('users'), { ...jsonRequest(target, body, bearer(platform.accessToken)), method })

test('rejects the removal of the last platform administrator', async () => {
  const { status, json } = await asAdministrator('DELETE', `/api/v1/users/${platform.id}`)
  expect([status, json.error]).toEqual([409, 'last_administrator'])
})

test('rejects user fields that a request cannot set', async () => {
  const { json: user } = await asAdministrator('POST', '/api/v1/users', fixtures.userRequest(['Viewer']))
  const fields = { id: newId('user'), authProvider: 'ldap', epoch: 7, permissions: ['platform:admin'] }
  for (const [name, value] of Object.entries(fields)) {
    const extra = { [name]: value }
    const responses = [
      await asAdministrator('POST', '/api/v1/users', { ...fixtures.userRequest(['Viewer']), ...extra }),
      await asAdministrator('PATCH', `/api/v1/users/${user.id}`, extra),
    ]
    for (const { status, json } of responses)
      expect([status, json.details[0]]).toMatchObject([400, { path: `/${name}`, code: 'unknown_field' }])
  }
})

test('a logout with an API token ends neither the token nor a session', async () => {
  const { token } = (await asAdministrator('POST', '/api/v1/users/me/tokens', { name: 'nightly' })).json
  expect((await call('POST /api/v1/auth/logout', bearer(token))).status).toBe(204)
  for (const each of [token, platform.accessToken]) {
    expect((await call('GET /api/v1/auth/me', bearer(each))).status).toBe(200)
  }
})

const registerCluster = (headers: Record<string, string>) =>
  send(handlerOf('clusters'), jsonRequest('/api/v1/clusters', { name: 'berlin', type: 'Hypervisor' }, headers))

test.each(['/api/v1/portal/summary', '/api/v1/portal/history?hours=1'])(
  '%s is sent again only after a change, with an ETag per caller',
  async (target) => {
    const headers = await fixtures.bearer(['OrgAdmin'])
    const read = (query: Record<string, string> = {}) =>
      send(handlerOf('portal-data'), { target, headers: { ...headers, ...query } })
    const firstPage = await read()
    expect([firstPage.status, firstPage.headers['cache-control']]).toEqual([200, 'private, no-cache'])
    const { etag = '' } = firstPage.headers
    const unchangedResponse = await read({ 'If-None-Match': etag })
    expect([unchangedResponse.status, unchangedResponse.text, unchangedResponse.headers['etag']]).toEqual([
      304,
      '',
      etag,
    ])
    expect((await registerCluster(headers)).status).toBe(201)
    const changedResponse = await read({ 'If-None-Match': etag })
    expect([changedResponse.status, changedResponse.headers['etag'] === etag]).toEqual([200, false])
    const otherHeaders = await fixtures.bearer(['OrgAdmin'])
    const { status } = await read({ ...otherHeaders, 'If-None-Match': changedResponse.headers['etag'] ?? '' })
    expect(status).toBe(200)
  },
)

test('the summary contains the prefix of the ETag of the navigation', async () => {
  const headers = await fixtures.bearer(['Operator'])
  const navigation = await call('GET /api/v1/portal/navigation', headers)
  const { navigationTag } = (await call('GET /api/v1/portal/summary', headers)).json
  expect(navigation.headers['etag']).toMatch(new RegExp(`^"${navigationTag}`))
})
