import type { ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { moduleErrors } from '@platform/contract/module'
import { portalPath } from '@platform/contract/portal-paths'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { serialise } from '@platform/core/modules/record'
import { moduleProxy } from '@platform/http/proxy/proxy'
import { handler } from '../../functions/gateway/modules.ts'
import { handler as modules } from '../../functions/modules.ts'
import { newModuleId, putModule, releaseFor } from '../core/support/modules.ts'
import { readPendingEvents } from '../core/support/outbox.ts'
import { bearer } from '../support/fixtures.ts'
import { runInstance } from '../support/hostile-module.ts'
import { manifestFor } from '../support/module-manifest.ts'
import { send } from '../support/request.ts'
import { beforeCommand, countStoreCalls } from '../support/store-calls.ts'
import { get, operator, respond } from './module-requests.ts'

await vi.hoisted(() => {
  // Requests bypass the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

test('forwards only the listed response headers', async () => {
  const forwardedHeaders = {
    'cache-control': 'max-age=60',
    'content-disposition': 'attachment; filename="a.csv"',
    'content-language': 'de',
    etag: '"1"',
    'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT',
    'retry-after': '5',
    'x-total-count': '7',
  }
  const removedHeaders = {
    'set-cookie': ['session=stolen', 'b=c'],
    'access-control-allow-origin': '*',
    'access-control-allow-credentials': 'true',
    'content-security-policy': "default-src *; script-src * 'unsafe-eval'",
    'strict-transport-security': 'max-age=0',
    'x-content-type-options': 'none',
    'x-frame-options': 'ALLOWALL',
    'referrer-policy': 'unsafe-url',
    'clear-site-data': '"*"',
    'service-worker-allowed': '/',
    'www-authenticate': 'Basic realm="phish"',
    'x-platform-published': 'W10',
    'x-platform-anything': 'x',
    'x-trace-id': 'forged',
    'ratelimit-limit': '1',
    'grip-hold': 'response',
    'grip-channel': 'clus_1',
    'grip-timeout': '600',
    'alt-svc': 'h3=":443"',
    refresh: '0;url=https://attacker.example',
    link: '<https://attacker.example>; rel=preload',
    location: 'https://attacker.example',
    server: 'module/1',
    'x-powered-by': 'module',
    'transfer-encoding': 'chunked',
    connection: 'keep-alive',
  }
  await using module = await runInstance(
    respond({ ...forwardedHeaders, ...removedHeaders, 'content-type': 'text/csv' }),
  )
  const { headers } = await get(module.api)
  const platform = {
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-type': 'text/csv',
    vary: 'authorization, cookie',
    'x-trace-id': expect.stringMatching(/^[0-9a-f]{32}$/),
    'ratelimit-limit': '1000000',
    'ratelimit-remaining': expect.any(String),
    'ratelimit-reset': expect.any(String),
  }
  expect(headers).toEqual({ ...forwardedHeaders, ...platform })
})

test('forbids caching by default, and varies cacheable responses by caller', async () => {
  await using module = await runInstance()
  expect((await get(module.api)).headers['cache-control']).toBe('no-store')
  module.respondWith(respond({ 'content-type': 'text/plain', 'cache-control': 'max-age=9', vary: 'accept' }))
  const vary = 'accept, authorization, cookie'
  expect((await get(module.api)).headers).toMatchObject({ 'cache-control': 'max-age=9', vary })
})

test.for([
  ['application/json', 'application/json'],
  ['application/problem+json; charset=utf-8', 'application/problem+json; charset=utf-8'],
  ['TEXT/Plain;charset="UTF-8"', 'text/plain; charset=UTF-8'],
  ['image/png', 'image/png'],
  ['font/woff2', 'font/woff2'],
] as const)('adds no security policy to the inert type %s', async ([type, expected]) => {
  await using module = await runInstance(respond({ 'content-type': type }))
  const { headers } = await get(module.api)
  expect([headers['content-type'], headers['content-security-policy']]).toEqual([expected, undefined])
})

test.for([
  ['text/html', 'text/html'],
  ['TEXT/HTML ; charset=utf-8', 'text/html; charset=utf-8'],
  ['image/svg+xml', 'image/svg+xml'],
  ['application/xhtml+xml', 'application/xhtml+xml'],
  ['text/xml', 'text/xml'],
  ['application/pdf', 'application/pdf'],
  ['multipart/x-mixed-replace; boundary=a', 'multipart/x-mixed-replace'],
  ['application/json, text/html', 'application/octet-stream'],
  ['text/plain;, text/html', 'application/octet-stream'],
  ['application/json;a="b", text/html', 'application/octet-stream'],
  ['text', 'application/octet-stream'],
  ['', 'application/octet-stream'],
  [undefined, 'application/octet-stream'],
] as const)('restricts a response of type %j to a sandbox', async ([type, expected]) => {
  const headers = type === undefined ? {} : { 'content-type': type }
  await using module = await runInstance(respond(headers, '<script>alert(1)</script>'))
  const response = await get(`/modules/${module.moduleId}`)
  const policy = response.headers['content-security-policy'] ?? ''
  expect([response.headers['content-type'], response.headers['x-content-type-options']]).toEqual([expected, 'nosniff'])
  const [sandbox = '', ...directives] = policy.split('; ')
  expect(sandbox).toMatch(/^sandbox(?: allow-scripts allow-forms)?$/)
  expect(policy).not.toContain('allow-same-origin')
  expect(directives.includes("default-src 'self'")).toBe(expected.startsWith('text/html'))
  expect(directives.some((directive) => directive.includes('*') || directive.includes('http'))).toBe(false)
})

test.for([
  ['{api}/b?c#d', '{api}/b?c#d'],
  ['/modules/{id}', '/modules/{id}'],
  ['b', '{api}/b'],
  ['?page=2', '{api}/a?page=2'],
  ['https://attacker.example/', undefined],
  ['//attacker.example/modules/{id}', undefined],
  ['/\\attacker.example/modules/{id}', undefined],
  ['\\\\attacker.example', undefined],
  ['http://module:81/modules/{id}', undefined],
  ['javascript:alert(1)', undefined],
  ['data:text/html,x', undefined],
  ['/api/v1/auth/logout', undefined],
  ['{api}/../v1/clusters', undefined],
  ['{api}/%2e%2e/v1/clusters', undefined],
  ['/modules/{id}x', undefined],
  ['/', undefined],
  ['http://[', undefined],
] as const)('forwards a redirect to %s only to paths of the module', async ([location, expected]) => {
  await using module = await runInstance()
  const { api, moduleId } = module
  const resolve = (text: string) => text.replace('{api}', api).replace('{id}', moduleId)
  module.respondWith(respond({ location: resolve(location) }, '', 302))
  const { status, headers, json } = await get(`${api}/a`)
  if (expected !== undefined) return expect([status, headers['location']]).toEqual([302, resolve(expected)])
  expect([status, headers['location'], json.error]).toEqual([502, undefined, 'module_failed'])
  expect(json.message).toContain('redirects to an address that is not below its own paths')
})

test.for([
  ['<?page=2>; rel="next", <{api}/a?page=9>; rel=last', '<{api}/a?page=2>; rel="next", <{api}/a?page=9>; rel=last'],
  ['<http://module{api}?page=2>; rel="next"', '<{api}?page=2>; rel="next"'],
  ['<https://attacker.example>; rel=next', undefined],
  ['<?page=2>; rel=next, <//attacker.example>; rel=prev', undefined],
  ['<?page=2>; rel=next, <https://attacker.example', undefined],
] as const)('forwards the links %s only to paths of the module', async ([link, expected]) => {
  await using module = await runInstance()
  const resolve = (text: string) => text.replaceAll('{api}', module.api)
  module.respondWith(respond({ link: resolve(link) }))
  const { status, headers } = await get(`${module.api}/a`)
  expect([status, headers['link']]).toEqual([200, expected && resolve(expected)])
})

test.for(['text/event-stream', 'Text/Event-Stream; charset=utf-8'])(
  'rejects an endless response of type %s at once',
  async (type) => {
    const endless = (_: unknown, response: ServerResponse) =>
      void response.writeHead(200, { 'content-type': type }).write('data: 1\n\n')
    await using module = await runInstance(endless)
    const { status, json } = await get(module.api)
    expect([status, json.error]).toEqual([502, 'module_failed'])
    expect(json.message).toContain('streams events')
  },
)

test('an empty response without a type stays without one', async () => {
  await using module = await runInstance(respond({}, ''))
  expect((await get(module.api)).headers).not.toHaveProperty('content-type')
})

test.for([200, 204, 205, 206, 301, 304, 400, 401, 404, 418, 429, 500, 503, 599])(
  'forwards the status %d',
  async (status) => {
    const body = [204, 205, 304].includes(status) ? '' : '{"error":"own"}'
    await using module = await runInstance(respond({ 'content-type': 'application/json' }, body, status))
    const response = await get(module.api)
    expect([response.status, response.text]).toEqual([status, body])
  },
)

test('a 304 response does not replace the cached content type and policy', async () => {
  await using module = await runInstance(respond({ etag: '"1"' }, '', 304))
  const { headers } = await get(module.api)
  expect(headers).toHaveProperty('etag')
  for (const name of ['content-security-policy', 'content-type']) expect(headers).not.toHaveProperty(name)
})

test.for([Number.NaN, -1, 0, 100, 199, 200.5, 600])(
  'rejects the status %d of a runtime without HTTP',
  async (status) => {
    await using module = await runInstance()
    const proxy = moduleProxy(async () => ({ status, headers: {}, body: Buffer.from('x') }))
    const response = await send(proxy, { target: module.api, headers: operator })
    expect([response.status, response.json.error]).toEqual([502, 'module_failed'])
  },
)

const raw =
  (text: string) =>
  (_: unknown, { socket }: ServerResponse) =>
    void socket?.end(text)

test.for([
  ['a status below 100', raw('HTTP/1.1 99 Low\r\n\r\n')],
  ['a status above 599', raw('HTTP/1.1 700 High\r\ncontent-length: 0\r\n\r\n')],
  ['a change of protocol', raw('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n')],
  ['no HTTP', raw('hello\r\n\r\n')],
  ['an empty response', raw('')],
  ['an incomplete response', raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')],
  ['unlimited headers', raw(`HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(5000)}`)],
  [
    'an unlimited body',
    (_: unknown, response: ServerResponse) => {
      const writeMore = () => {
        while (response.write(Buffer.alloc(1_000_000)) && !response.destroyed);
      }
      response.writeHead(200, { 'content-type': 'text/plain' }).on('drain', writeMore)
      writeMore()
    },
  ],
] as const)('reports a module that sends %s as failed, and serves the next request', async ([, behaviour]) => {
  await using module = await runInstance(behaviour)
  const response = await get(module.api)
  expect([response.status, response.json?.error]).toEqual([502, 'module_failed'])
  expect(response.json.message).not.toContain('socket')
  module.respondWith(respond({ 'content-type': 'text/plain' }))
  expect((await get(module.api)).status).toBe(200)
})

test('forwards a response of up to 4.5 MB, which fits the limit of Lambda', async () => {
  await using module = await runInstance(respond({ 'content-type': 'text/plain' }, Buffer.alloc(4_500_000, 1)))
  const event = { rawPath: module.api, rawQueryString: '', headers: operator, isBase64Encoded: false }
  const result = await handler({ ...event, requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } } })
  expect(result.statusCode).toBe(200)
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(6 * 1024 * 1024)
  module.respondWith(respond({ 'content-type': 'text/plain' }, Buffer.alloc(4_500_001)))
  expect((await get(module.api)).status).toBe(502)
})

const navigation = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', accept: 'text/html,*/*;q=0.8' }
const navigate = (target: string, headers: Record<string, string> = navigation) => send(handler, { target, headers })

const redirectOf = ({ headers }: { headers: Record<string, string> }) => {
  const { pathname, searchParams } = new URL(headers['location'] ?? '', 'https://platform.example.com')
  return [pathname, searchParams.get('open')]
}

test('redirects navigation to a module page to the portal without a call to module or store', async () => {
  await using module = await runInstance()
  const page = `/modules/${module.moduleId}/deep?q=1&r=%C3%A9`
  const calls = await countStoreCalls(async () => {
    for (const headers of [navigation, { ...navigation, ...operator }]) {
      const response = await navigate(page, headers)
      expect([response.status, redirectOf(response)]).toEqual([302, ['/', page]])
      expect(response.headers).toMatchObject({ vary: 'sec-fetch-dest', 'cache-control': 'no-store' })
    }
  })
  expect([calls, module.requests]).toEqual([0, []])
})

test('serves the page itself to frames', async () => {
  await using module = await runInstance()
  module.respondWith(respond({ 'content-type': 'text/html', 'cache-control': 'max-age=9' }, '<p>page</p>'))
  for (const destination of ['iframe', 'frame', 'empty', undefined]) {
    const fetchHeaders = destination && { 'sec-fetch-dest': destination }
    const { status, text, headers } = await get(`/modules/${module.moduleId}`, { ...operator, ...fetchHeaders })
    expect([status, text, headers['vary']]).toEqual([200, '<p>page</p>', 'authorization, cookie, sec-fetch-dest'])
  }
})

test('redirects neither API paths nor other methods', async () => {
  await using module = await runInstance()
  expect((await navigate(module.api)).status).toBe(401)
  for (const method of ['POST', 'HEAD']) {
    const sentRequest = { method, target: `/modules/${module.moduleId}`, headers: navigation }
    expect((await send(handler, sentRequest)).status).toBe(401)
  }
})

test.each([
  '/modules/hello',
  '/modules/hello/',
  '/modules/hello/a%20b/%C3%A9',
  '/modules/hello?next=https://attacker.example/%0d%0aset-cookie:a=b',
])('encodes %s into one portal location', async (target) => {
  const response = await navigate(target)
  expect(response.headers['location']).toMatch(/^\/\?open=%2Fmodules%2Fhello[\w%.~!*'()-]*$/)
  const [path, page] = redirectOf(response)
  expect([path, page]).toEqual(['/', target])
  if (!target.includes('%20')) expect(page).toMatch(portalPath)
})

test.each(['/modules/..//attacker.example', '/modules/%2F%2Fattacker.example', '/modules/a%5Cb'])(
  'does not redirect the invalid path %s',
  async (target) => {
    const { status, json, headers } = await navigate(target)
    expect([status, json.error, headers['location']]).toEqual([400, 'invalid_path', undefined])
  },
)

const publish = (...events: unknown[]) =>
  respond({ 'x-platform-published': Buffer.from(JSON.stringify(events)).toString('base64url') })

/** Stores the record of a module. Returns the organisation to which its events belong. */
async function storeModule(moduleId: string): Promise<string> {
  const organisationId = newId('org')
  const image = { repository: 'r.example/m', digest: 'x', isVerified: true }
  const release = serialise({ moduleId, version: '1.0.0', manifest: manifestFor(moduleId), ...image })
  const set = { id: moduleId, organisationId, state: 'Running', updatedAtMs: 0, release }
  await transact([upsert(keys.module(moduleId), { set })])
  return organisationId
}

const recordedEvents = (organisationId: string) => readPendingEvents({ organisationId })

test('records only published events of the module itself, for its organisation', async () => {
  await using module = await runInstance()
  const { moduleId, api } = module
  const organisationId = await storeModule(moduleId)
  const event = { type: `module.${moduleId}.done`, subject: 'thing', data: { count: 1 } }
  module.respondWith(
    publish(event, { ...event, type: 'module.other.done' }, { ...event, type: 'platform.user.deleted' }),
  )
  const response = await get(api)
  expect([response.status, response.headers['x-platform-published']]).toEqual([200, undefined])
  const expected = { name: event.type, subject: 'thing', data: { count: 1 } }
  expect(await recordedEvents(organisationId)).toMatchObject([expected])
  for (const invalidHeader of ['not base64 of JSON', 'e30', '']) {
    module.respondWith(respond({ 'x-platform-published': invalidHeader }))
    expect((await get(api)).status).toBe(200)
  }
  expect(await recordedEvents(organisationId)).toHaveLength(1)
  module.respondWith(publish(event))
  expect(await countStoreCalls(() => get(api))).toBe(2)
})

test('forwards the response if its events cannot be stored', async () => {
  await using module = await runInstance()
  module.respondWith(publish({ type: `module.${module.moduleId}.done`, data: {} }))
  // The module has no record.
  expect((await get(module.api)).status).toBe(200)
  const organisationId = await storeModule(module.moduleId)
  const hasFailed = beforeCommand(/TransactWrite/, () => Promise.reject(new Error('The store is gone.')))
  expect([(await get(module.api)).status, hasFailed()]).toEqual([200, true])
  expect(await recordedEvents(organisationId)).toEqual([])
})

test.each(['Viewer', 'OrgAdmin', 'PlatformAdmin'] as const)(
  'shows the error text of a failed module only to callers with modules:install: %s',
  async (role) => {
    const id = newModuleId()
    const message = 'It crashed five times in ten minutes.\nTypeError: no cluster berlin-1 of org_secret'
    await putModule(releaseFor(id), { state: 'Failed', error: { code: 'PLAT-MOD-5008', message, atMs: now() } })
    const headers = await bearer([role])
    const { json: single } = await send(modules, { target: `/api/v1/modules/${id}`, headers })
    const { json: list } = await send(modules, { target: '/api/v1/modules', headers })
    const lastError = {
      code: 'PLAT-MOD-5008',
      message: role === 'PlatformAdmin' ? message : moduleErrors['PLAT-MOD-5008'],
    }
    const listedModule = list.items.find((item: { id: string }) => item.id === id)
    for (const each of [single, listedModule]) expect(each).toMatchObject({ state: 'Failed', lastError })
  },
)
