import { expect, test, vi } from 'vitest'
import { messageOf } from '@platform/contract/errors'
import { jsonRequest, send, type TestRequest } from '../support/request.ts'
import { captureLog } from '../support/log.ts'
import { handler, request } from './api.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1', PLAT_LOG_LEVEL: 'info' }))

const traceIdFor = async (traceparent: string): Promise<string | undefined> =>
  (await request({ target: '/things', headers: { traceparent } })).headers['x-trace-id']

test('a literal segment takes precedence over a parameter', async () => {
  expect((await request('/things/catalog')).json).toEqual({ catalog: true })
  expect((await request('/things/catalogs')).json).toEqual({ thing: 'catalogs' })
})

test('decodes a parameter once', async () => {
  expect((await request('/things/caf%C3%A9%20au%20lait')).json).toEqual({ thing: 'café au lait' })
  expect((await request('/things/a+b:c@d')).json).toEqual({ thing: 'a+b:c@d' })
})

test.each([
  ['an unknown path', { target: '/nothing' }],
  ['a path below a route', { target: '/things/a/b' }],
  ['a path with a slash at its end', { target: '/things/' }],
  ['the root', { target: '/' }],
])('returns 404 for %s', async (_, sent) => {
  const { status, json, headers } = await request(sent)
  expect(status).toBe(404)
  expect(json).toEqual({
    error: 'route_not_found',
    message: messageOf('route_not_found'),
    traceId: headers['x-trace-id'],
  })
})

test.each(['DELETE', 'TRACE', 'get', 'BREW'])('returns 405 for the method %s', async (method) => {
  const { status, json, headers } = await request({ method, target: '/things' })
  expect([status, json.error, headers['allow']]).toEqual([405, 'method_not_allowed', 'GET, POST, HEAD, OPTIONS'])
})

test('HEAD returns the headers of GET without a body', async () => {
  const get = await request('/page')
  const head = await request({ method: 'HEAD', target: '/page' })
  const { 'x-trace-id': _, ...headers } = get.headers
  expect(head).toMatchObject({ status: 200, text: '', headers })
  expect(await request({ method: 'HEAD', target: '/nothing' })).toMatchObject({ status: 404, text: '' })
})

test.each([
  ['dot segments', '/things/../page'],
  ['an encoded dot segment', '/things/%2e%2e/page'],
  ['a single dot', '/things/.'],
  ['an encoded slash', '/things/%2Fpage'],
  ['an encoded backslash', '/things/..%5Cpage'],
  ['a double encoding', '/things/%252e%252e'],
  ['an encoded question mark', '/things/a%3Fb'],
  ['an encoded fragment', '/things/a%23b'],
  ['a NUL', '/things/a%00b'],
  ['a line break', '/things/a%0D%0Ab'],
  ['a C1 control', '/things/a%C2%9Bb'],
])('rejects a path with %s', async (_, target) => {
  const { status, json } = await request(target)
  expect([status, json.error]).toEqual([400, 'invalid_path'])
})

test('every response has a trace id and security headers', async () => {
  for (const target of ['/things', '/nothing', '/things/%252e', '/fail/unexpected']) {
    expect((await request(target)).headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-trace-id': expect.stringMatching(/^[0-9a-f]{32}$/),
    })
  }
})

test('uses the trace id of a valid traceparent, otherwise a new one', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  expect(await traceIdFor(`00-${traceId}-00f067aa0ba902b7-01`)).toBe(traceId)
  expect(await traceIdFor(`cc-${traceId}-00f067aa0ba902b7-01-later-fields`)).toBe(traceId)
  for (const invalidResponse of [
    `ff-${traceId}-00f067aa0ba902b7-01`,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${traceId}`,
    traceId,
    '<script>',
  ]) {
    const generatedId = await traceIdFor(invalidResponse)
    expect(generatedId).toMatch(/^[0-9a-f]{32}$/)
    expect(generatedId).not.toBe(traceId)
  }
})

test.each([
  ['conflict', 409, 'cluster_name_taken', {}],
  ['token', 422, 'initial_admin_token_invalid', { howToRetrieve: 'look' }],
  ['complete', 403, 'setup_already_complete', { setupComplete: true }],
  ['site', 422, 'site_not_found', {}],
  ['limited', 429, 'rate_limited', {}],
  ['unavailable', 503, 'database_unavailable', {}],
  ['credentials', 401, 'invalid_credentials', {}],
])('returns status, code and public details of the error %s', async (name, status, error, extra) => {
  const response = await request(`/fail/${name}`)
  expect(response.status).toBe(status)
  const traceId = response.headers['x-trace-id']
  expect(response.json).toEqual({ error, message: expect.any(String), traceId, ...extra })
})

test('429, 503 and 401 have headers for the next request', async () => {
  expect((await request('/fail/limited')).headers['retry-after']).toBe('7')
  expect((await request('/fail/unavailable')).headers['retry-after']).toBe('2')
  expect((await request('/strict/unavailable')).headers['retry-after']).toBe('2')
  expect((await request('/fail/credentials')).headers['www-authenticate']).toBe('Bearer')
})

test('an unexpected error returns 500 without details, and is logged once with stack and cause', async () => {
  const error = 'internal_error'
  let traceId = ''
  const lines = await captureLog(async () => {
    const { status, json } = await send(handler, { target: '/fail/unexpected' })
    traceId = json.traceId
    expect([status, json]).toEqual([500, { error, message: messageOf(error), traceId }])
  })
  const errors = lines.filter(({ level }) => level === 'error')
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatchObject({ traceId, route: '/fail/{id}', message: 'internal_error' })
  expect(errors[0]?.['cause'].stack).toMatch(/^TypeError: secret detail\n +at /)
  expect(errors[0]?.['cause'].cause.stack).toMatch(/^Error: deeper detail\n/)
})

test('logs one line per request with the route and no value of the request', async () => {
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

test('validates responses where this is enabled', async () => {
  expect((await request('/strict/valid')).status).toBe(200)
  expect((await request('/strict/invalid')).status).toBe(500)
  expect((await request('/strict/extra')).status).toBe(500)
})

test('logs the path of an additional response field without its value', async () => {
  const lines = await captureLog(() => send(handler, { target: '/strict/extra' }))
  expect(lines[0]?.['cause'].stack).toContain('/list/0/passwordHash')
})

test('an endpoint without a body ignores a request body', async () => {
  const bodies: TestRequest[] = [
    { method: 'POST', target: '/touch' },
    jsonRequest('/touch', '{not json'),
    { method: 'POST', target: '/touch', headers: { 'content-type': 'image/png' }, body: Uint8Array.of(137, 80) },
  ]
  for (const sentBody of bodies) expect(await request(sentBody)).toMatchObject({ status: 204, text: '' })
})

test('returns text with its ETag, and 304 to a caller that has it', async () => {
  const page = await request('/page')
  expect(page).toMatchObject({ status: 200, text: '<p>Page</p>' })
  expect(page.headers).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'public, max-age=60',
  })
  for (const knownEtags of ['"v1"', 'W/"v1"', '"v0", "v1"', '"v0",W/"v1"']) {
    const revalidation = await request({ target: '/page', headers: { 'If-None-Match': knownEtags } })
    expect(revalidation).toMatchObject({ status: 304, text: '', headers: { etag: '"v1"' } })
  }
  expect((await request({ target: '/page', headers: { 'If-None-Match': '"v2"' } })).status).toBe(200)
})

test('uses the address of the gateway, not of a header', async () => {
  const headers = { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9' }
  const { json } = await request({ target: '/things', headers, address: '198.51.100.7' })
  expect(json.origin).toEqual({ address: '198.51.100.7' })
})

test.each([
  ['out of range', '/things?page=0', 'invalid_format'],
  ['not a number', '/things?page=NaN', 'invalid_format'],
  ['a lone percent sign', '/things?page=%', 'invalid_format'],
  ['given twice', '/things?page=1&page=2', 'repeated'],
])('rejects a query parameter that is %s', async (_, target, code) => {
  const { status, json } = await request(target)
  expect([status, json.error]).toEqual([400, 'validation_failed'])
  expect(json.details).toEqual([{ in: 'query', path: '/page', code, message: expect.any(String) }])
})

test.each(['/things?page=%FF%FE', '/things?page=1&x=%C3', '/things?%80=1'])(
  'rejects invalid UTF-8 in %s',
  async (target) => {
    const { status, json } = await request(target)
    expect([status, json.details[0].code]).toEqual([400, 'invalid_encoding'])
  },
)

test('allows unknown query parameters of files', async () => {
  expect((await request('/things?page=2&other=x&__proto__=y&constructor=z')).json.query).toEqual({ page: '2' })
})

test('names a path parameter that is too long', async () => {
  const { status, json } = await request(`/things/${'x'.repeat(21)}`)
  expect(status).toBe(400)
  expect(json.details).toEqual([{ in: 'path', path: '/id', code: 'too_big', message: expect.any(String) }])
})
