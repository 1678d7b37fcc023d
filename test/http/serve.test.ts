import { expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import { jsonRequest, type TestResponse, send, type TestRequest } from '../support/request.ts'
import { captureLog } from '../support/log.ts'
import { handler } from './endpoints.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1', PLAT_LOG_LEVEL: 'info' }))

/** Sends a request; what it logs does not matter. */
async function ask(sent: TestRequest | string): Promise<TestResponse> {
  let received: TestResponse | undefined
  await captureLog(async () => (received = await send(handler, typeof sent === 'string' ? { target: sent } : sent)))
  if (received === undefined) throw new Error('no answer')
  return received
}

const traceOf = async (traceparent: string): Promise<string | undefined> =>
  (await ask({ target: '/things', headers: { traceparent } })).headers['x-trace-id']

test('a literal segment wins over a parameter, in whatever order the routes are given', async () => {
  expect((await ask('/things/catalog')).json).toEqual({ catalog: true })
  expect((await ask('/things/catalogs')).json).toEqual({ thing: 'catalogs' })
})

test('a parameter arrives decoded, once', async () => {
  expect((await ask('/things/caf%C3%A9%20au%20lait')).json).toEqual({ thing: 'café au lait' })
  expect((await ask('/things/a+b:c@d')).json).toEqual({ thing: 'a+b:c@d' })
})

test.each([
  ['an unknown path', { target: '/nothing' }],
  ['a path below a route', { target: '/things/a/b' }],
  ['a path with a slash at its end', { target: '/things/' }],
  ['the root', { target: '/' }],
  ['another method', { method: 'DELETE', target: '/things' }],
  ['HEAD', { method: 'HEAD', target: '/things' }],
  ['OPTIONS', { method: 'OPTIONS', target: '/things' }],
  ['TRACE, which Request would refuse', { method: 'TRACE', target: '/things' }],
  ['a method in lower case', { method: 'get', target: '/things' }],
  ['a method that does not exist', { method: 'BREW', target: '/things' }],
])('%s answers 404 route_not_found', async (_, sent) => {
  const { status, json, headers } = await ask(sent)
  expect(status).toBe(404)
  expect(json).toEqual({
    error: 'route_not_found',
    message: messageOf('route_not_found'),
    traceId: headers['x-trace-id'],
  })
})

test.each([
  ['dot segments', '/things/../page'],
  ['an encoded dot segment', '/things/%2e%2e/page'],
  ['a single dot', '/things/.'],
  ['an encoded slash that makes an empty segment', '/things/%2Fpage'],
  ['an encoded backslash', '/things/..%5Cpage'],
  ['a double encoding', '/things/%252e%252e'],
  ['an encoded question mark', '/things/a%3Fb'],
  ['an encoded fragment', '/things/a%23b'],
  ['a NUL', '/things/a%00b'],
  ['a line break', '/things/a%0D%0Ab'],
  ['a C1 control', '/things/a%C2%9Bb'],
])('a path with %s answers 400 invalid_path', async (_, target) => {
  const { status, json } = await ask(target)
  expect([status, json.error]).toEqual([400, 'invalid_path'])
})

test('every answer carries the trace and the headers that keep browsers and caches in check', async () => {
  for (const target of ['/things', '/nothing', '/things/%252e', '/fail/defect']) {
    expect((await ask(target)).headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-trace-id': expect.stringMatching(/^[0-9a-f]{32}$/),
    })
  }
})

test('the trace id is the one of a valid traceparent, and a fresh one otherwise', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  expect(await traceOf(`00-${traceId}-00f067aa0ba902b7-01`)).toBe(traceId)
  expect(await traceOf(`cc-${traceId}-00f067aa0ba902b7-01-later-fields`)).toBe(traceId)
  for (const invalid of [
    `ff-${traceId}-00f067aa0ba902b7-01`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${traceId}`,
    traceId,
    '<script>',
  ]) {
    const fresh = await traceOf(invalid)
    expect(fresh).toMatch(/^[0-9a-f]{32}$/)
    expect(fresh).not.toBe(traceId)
  }
})

test.each([
  ['taken', 409, 'cluster_name_taken', {}],
  ['token', 422, 'initial_admin_token_invalid', { howToRetrieve: 'look' }],
  ['complete', 403, 'setup_already_complete', { setupComplete: true }],
  ['site', 422, 'site_not_found', {}],
  ['limited', 429, 'rate_limited', {}],
  ['away', 503, 'database_unavailable', {}],
  ['credentials', 401, 'invalid_credentials', {}],
])('a fault answers its status, its code and what its caller may see: %s', async (name, status, error, extra) => {
  const received = await ask(`/fail/${name}`)
  expect(received.status).toBe(status)
  const traceId = received.headers['x-trace-id']
  expect(received.json).toEqual({ error, message: expect.any(String), traceId, ...extra })
})

test('429, 503 and 401 say what to do next in their headers', async () => {
  expect((await ask('/fail/limited')).headers['retry-after']).toBe('7')
  expect((await ask('/fail/away')).headers['retry-after']).toBe('2')
  expect((await ask('/strict/away')).headers['retry-after']).toBe('2')
  expect((await ask('/fail/credentials')).headers['www-authenticate']).toBe('Bearer')
})

test('a defect answers 500 without its details, and is logged once with stack and cause', async () => {
  let received: TestResponse | undefined
  const lines = await captureLog(async () => (received = await send(handler, { target: '/fail/defect' })))
  expect(received?.status).toBe(500)
  const traceId = received?.headers['x-trace-id']
  expect(received?.json).toEqual({ error: 'internal_error', message: messageOf('internal_error'), traceId })
  const errors = lines.filter(({ level }) => level === 'error')
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatchObject({ traceId, route: '/fail/{id}', message: 'internal_error' })
  expect(errors[0]?.['cause'].stack).toMatch(/^TypeError: secret detail\n +at /)
  expect(errors[0]?.['cause'].cause.stack).toMatch(/^Error: deeper detail\n/)
})

test('a request leaves one line, which names the route and no value of the request', async () => {
  const headers = { authorization: 'Bearer hidden-token', cookie: 'session=hidden-cookie' }
  const lines = await captureLog(() => send(handler, jsonRequest('/things?page=1', { name: 'hidden-name' }, headers)))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: 'info',
    message: 'request',
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    route: '/things',
    method: 'POST',
    status: 200,
    durationMs: expect.any(Number),
  })
})

test('an answer that differs from the contract is a 500 where answers are checked', async () => {
  expect((await ask('/strict/right')).status).toBe(200)
  expect((await ask('/strict/wrong')).status).toBe(500)
  expect((await ask('/strict/more')).status).toBe(500)
})

test('what an answer tells beyond the contract is named in the log without its value', async () => {
  const lines = await captureLog(() => send(handler, { target: '/strict/more' }))
  expect(lines[0]?.['cause'].stack).toContain('/list/0/passwordHash')
})

test('an endpoint without a body answers 204 and ignores whatever body it is sent', async () => {
  const bodies: TestRequest[] = [
    { method: 'POST', target: '/touch' },
    jsonRequest('/touch', '{not json'),
    { method: 'POST', target: '/touch', headers: { 'content-type': 'image/png' }, body: Uint8Array.of(137, 80) },
  ]
  for (const sent of bodies) expect(await ask(sent)).toMatchObject({ status: 204, text: '' })
})

test('text is answered as its endpoint says, and not again to a caller that has it', async () => {
  const page = await ask('/page')
  expect(page).toMatchObject({ status: 200, text: '<p>Page</p>' })
  expect(page.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'public, max-age=60',
  })
  for (const known of ['"v1"', 'W/"v1"', '"v0", "v1"', '"v0",W/"v1"']) {
    const again = await ask({ target: '/page', headers: { 'If-None-Match': known } })
    expect(again).toMatchObject({ status: 304, text: '', headers: { etag: '"v1"' } })
  }
  expect((await ask({ target: '/page', headers: { 'If-None-Match': '"v2"' } })).status).toBe(200)
})

test('the address is the one that the gateway saw, not one that a header claims', async () => {
  const headers = { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9' }
  const { json } = await ask({ target: '/things', headers, address: '198.51.100.7' })
  expect(json.origin).toEqual({ address: '198.51.100.7' })
})

test.each([
  ['out of its range', '/things?page=0', 'invalid_format'],
  ['not a number', '/things?page=NaN', 'invalid_format'],
  ['a lone percent sign', '/things?page=%', 'invalid_format'],
  ['bytes that are no text', '/things?page=%FF%FE', 'invalid_format'],
  ['given twice', '/things?page=1&page=2', 'repeated'],
])('a query parameter that is %s answers 400 and is named', async (_, target, code) => {
  const { status, json } = await ask(target)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details).toEqual([{ in: 'query', path: '/page', code, message: expect.any(String) }])
})

test('a query parameter that is not known is ignored', async () => {
  expect((await ask('/things?page=2&other=x&__proto__=y&constructor=z')).json.query).toEqual({ page: '2' })
})

test('a path parameter that is too long is named', async () => {
  const { status, json } = await ask(`/things/${'x'.repeat(21)}`)
  expect(status).toBe(400)
  expect(json.details).toEqual([{ in: 'path', path: '/id', code: 'too_big', message: expect.any(String) }])
})
