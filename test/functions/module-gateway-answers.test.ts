import { type ServerResponse } from 'node:http'
import { expect, test, vi } from 'vitest'
import { moduleProxy } from '@platform/http/proxy/proxy'
import { handler } from '../../functions/gateway/modules.ts'
import { send } from '../support/request.ts'
import { runInstance } from '../support/hostile-module.ts'
import { ada, answering, get } from './module-traffic.ts'

await vi.hoisted(() => {
  // Requests go past the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

test('of an answer only what is listed comes back', async () => {
  const passed = {
    'cache-control': 'max-age=60',
    'content-disposition': 'attachment; filename="a.csv"',
    'content-language': 'de',
    etag: '"1"',
    'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT',
    'retry-after': '5',
  }
  const kept = {
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
  await using module = await runInstance(answering({ ...passed, ...kept, 'content-type': 'text/csv' }))
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
  expect(headers).toEqual({ ...passed, ...platform })
})

test('an answer that does not say so is kept by nobody, and one that does by its caller alone', async () => {
  await using module = await runInstance()
  expect((await get(module.api)).headers['cache-control']).toBe('no-store')
  module.respondWith(answering({ 'content-type': 'text/plain', 'cache-control': 'max-age=9', vary: 'accept' }))
  expect((await get(module.api)).headers).toMatchObject({
    'cache-control': 'max-age=9',
    vary: 'accept, authorization, cookie',
  })
})

test.for([
  ['application/json', 'application/json'],
  ['application/problem+json; charset=utf-8', 'application/problem+json; charset=utf-8'],
  ['TEXT/Plain;charset="UTF-8"', 'text/plain; charset=UTF-8'],
  ['text/css', 'text/css'],
  ['image/png', 'image/png'],
  ['font/woff2', 'font/woff2'],
] as const)('an answer of type %s is harmless in any place', async ([type, shown]) => {
  await using module = await runInstance(answering({ 'content-type': type }))
  const { headers } = await get(module.api)
  expect([headers['content-type'], headers['content-security-policy']]).toEqual([shown, undefined])
})

test.for([
  ['text/html', 'text/html'],
  ['TEXT/HTML ; charset=utf-8', 'text/html; charset=utf-8'],
  ['image/svg+xml', 'image/svg+xml'],
  ['application/xhtml+xml', 'application/xhtml+xml'],
  ['text/xml', 'text/xml'],
  ['application/xml', 'application/xml'],
  ['application/pdf', 'application/pdf'],
  ['multipart/x-mixed-replace; boundary=a', 'multipart/x-mixed-replace'],
  ['application/x-shockwave-flash', 'application/x-shockwave-flash'],
  ['application/json, text/html', 'application/octet-stream'],
  ['text/plain;, text/html', 'application/octet-stream'],
  ['application/json;a="b", text/html', 'application/octet-stream'],
  ['text', 'application/octet-stream'],
  ['', 'application/octet-stream'],
  [undefined, 'application/octet-stream'],
] as const)('an answer of type %j runs nowhere but in a sandbox', async ([type, shown]) => {
  const headers = type === undefined ? {} : { 'content-type': type }
  await using module = await runInstance(answering(headers, '<script>alert(1)</script>'))
  const answer = await get(`/modules/${module.moduleId}`)
  const policy = answer.headers['content-security-policy'] ?? ''
  expect([answer.headers['content-type'], answer.headers['x-content-type-options']]).toEqual([shown, 'nosniff'])
  const [sandbox = '', ...rest] = policy.split('; ')
  expect(sandbox).toMatch(/^sandbox(?: allow-scripts allow-forms)?$/)
  expect(policy).not.toContain('allow-same-origin')
  const isPage = shown.startsWith('text/html')
  expect(rest.includes("default-src 'self'")).toBe(isPage)
  expect(rest.some((directive) => directive.includes('*') || directive.includes('http'))).toBe(false)
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
] as const)('a module that sends callers to %s sends them nowhere but to itself', async ([location, shown]) => {
  await using module = await runInstance()
  const { api, moduleId } = module
  const filled = (text: string) => text.replace('{api}', api).replace('{id}', moduleId)
  module.respondWith(answering({ location: filled(location) }, '', 302))
  const answer = await get(`${api}/a`)
  expect([answer.status, answer.headers['location']]).toEqual([302, shown === undefined ? undefined : filled(shown)])
})

test.for([200, 201, 204, 205, 206, 301, 304, 400, 401, 404, 418, 429, 500, 503, 599])(
  'the status %d is the module’s to answer',
  async (status) => {
    const body = [204, 205, 304].includes(status) ? '' : '{"error":"own"}'
    await using module = await runInstance(answering({ 'content-type': 'application/json' }, body, status))
    const answer = await get(module.api)
    expect([answer.status, answer.text]).toEqual([status, body])
  },
)

test('what a caller has kept of an answer is not changed by hearing that it is still good', async () => {
  await using module = await runInstance(answering({ etag: '"1"' }, '', 304))
  const { headers } = await get(module.api)
  expect(headers).toHaveProperty('etag')
  for (const name of ['content-security-policy', 'content-type']) expect(headers).not.toHaveProperty(name)
})

test.for([Number.NaN, -1, 0, 99, 100, 101, 199, 200.5, 600, 1000])(
  'the status %d of a runtime without HTTP is no answer either',
  async (status) => {
    await using module = await runInstance()
    const odd = moduleProxy(async () => ({ status, headers: {}, body: Buffer.from('x') }))
    const answer = await send(odd, { target: module.api, headers: ada })
    expect([answer.status, answer.json.error]).toEqual([502, 'module_failed'])
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
  ['what is no HTTP', raw('hello\r\n\r\n')],
  ['nothing', raw('')],
  ['half an answer', raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf')],
  ['headers without an end', raw(`HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(5000)}`)],
  [
    '100 MB',
    (_: unknown, response: ServerResponse) => {
      const more = () => {
        while (response.write(Buffer.alloc(1_000_000)) && !response.destroyed);
      }
      response.writeHead(200, { 'content-type': 'text/plain' }).on('drain', more)
      more()
    },
  ],
] as const)('a module that answers with %s has failed, and the next request is served', async ([, respond]) => {
  await using module = await runInstance(respond)
  const answer = await get(module.api)
  expect([answer.status, answer.json?.error]).toEqual([502, 'module_failed'])
  expect(answer.json.message).not.toContain('socket')
  module.respondWith(answering({ 'content-type': 'text/plain' }))
  expect((await get(module.api)).status).toBe(200)
})

test('an answer of 4.5 MB passes, and fits what Lambda carries', async () => {
  await using module = await runInstance(answering({ 'content-type': 'text/plain' }, Buffer.alloc(4_500_000, 1)))
  const event = { rawPath: module.api, rawQueryString: '', headers: ada, isBase64Encoded: false }
  const result = await handler({ ...event, requestContext: { http: { method: 'GET', sourceIp: '192.0.2.1' } } })
  expect(result.statusCode).toBe(200)
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(6 * 1024 * 1024)
  module.respondWith(answering({ 'content-type': 'text/plain' }, Buffer.alloc(4_500_001)))
  expect((await get(module.api)).status).toBe(502)
})
