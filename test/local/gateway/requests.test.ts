import { once } from 'node:events'
import { request } from 'node:http'
import { routePaths, routes } from '@platform/contract/index'
import { createRouter } from '@platform/local/gateway/routes'
import { parseSettings } from '@platform/local/settings'
import { expect, test } from 'vitest'
import { sampleRoutes, sendBytes, sendTarget, startGateway, startRecorder } from './support.ts'

test('builds the event of payload format 2.0', async () => {
  await using gateway = await startRecorder()
  const { port } = new URL(gateway.url)
  await fetch(`${gateway.url}/things/a%20b?color=red&color=blue&size=5`, {
    headers: { 'user-agent': 'tester', 'x-plain': 'yes', cookie: 'one=1; two=2' },
  })
  const { functionName, event } = gateway.last()
  expect(functionName).toBe('things')
  expect(event).toEqual({
    version: '2.0',
    routeKey: 'GET /things/{id}',
    rawPath: '/things/a b',
    sentPath: '/things/a%20b',
    rawQueryString: 'color=red&color=blue&size=5',
    cookies: ['one=1', 'two=2'],
    headers: expect.objectContaining({
      host: `127.0.0.1:${port}`,
      'user-agent': 'tester',
      'x-plain': 'yes',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-port': port,
      'x-forwarded-proto': 'http',
      'x-amzn-trace-id': expect.stringMatching(/^Root=1-[\da-f]{8}-[\da-f]{24}$/),
    }),
    queryStringParameters: { color: 'red,blue', size: '5' },
    pathParameters: { id: 'a b' },
    requestContext: {
      accountId: '000000000000',
      apiId: 'local',
      domainName: 'localhost',
      domainPrefix: 'localhost',
      http: {
        method: 'GET',
        path: '/things/a b',
        protocol: 'HTTP/1.1',
        sourceIp: '127.0.0.1',
        userAgent: 'tester',
      },
      requestId: expect.stringMatching(/^[\da-f-]{36}$/),
      routeKey: 'GET /things/{id}',
      stage: '$default',
      time: expect.stringMatching(/^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000$/),
      timeEpoch: expect.any(Number),
    },
    isBase64Encoded: false,
  })
  expect(event.headers).not.toHaveProperty('cookie')
  expect(event.headers).not.toHaveProperty('connection')
})

test('omits event members without a value', async () => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, '/things')
  const { event } = gateway.last()
  const requiredFields = 'version routeKey rawPath sentPath rawQueryString headers requestContext isBase64Encoded'
  expect(Object.keys(event).toSorted()).toEqual(requiredFields.split(' ').toSorted())
  expect([event.rawQueryString, event.requestContext.http.userAgent]).toEqual(['', ''])
})

test.for([
  ['a plain path', '/things/x', '/things/x', ''],
  ['an encoded slash', '/things/a%2Fb', '/things/a/b', ''],
  ['an encoded percent sign, once', '/things/%2541', '/things/%41', ''],
  ['encoded UTF-8', '/things/%C3%A9', '/things/é', ''],
  ['an encoded question mark', '/things/a%3Fb?c', '/things/a?b', 'c'],
  ['a second question mark', '/things?a=1?b', '/things', 'a=1?b'],
  ['unchanged dot segments', '/things/../x', '/things/../x', ''],
  ['unchanged double slashes', '//things', '//things', ''],
  ['an unchanged plus sign in the path', '/things/a+b', '/things/a+b', ''],
  ['an unchanged trailing slash', '/things/', '/things/', ''],
  ['a target in absolute form', 'http://other.example/things?x=1', '/things', 'x=1'],
  ['an origin without a path', 'http://other.example', '/', ''],
])('decodes the path, not the query: %s', async ([, target, path, query]) => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, target ?? '')
  const { event } = gateway.last()
  const sentPath = (target ?? '').replace('http://other.example', '').split('?')[0] || '/'
  expect(event).toMatchObject({ rawPath: path, sentPath, rawQueryString: query, requestContext: { http: { path } } })
})

test.for([
  ['decodes names and values', 'a%20b=c%26d', { 'a b': 'c&d' }],
  ['reads a plus sign as a space', 'a=b+c', { a: 'b c' }],
  ['joins duplicates by commas, in order', 'a=2&b=x&a=1', { a: '2,1', b: 'x' }],
  ['keeps a parameter without a value', 'a&b=', { a: '', b: '' }],
  ['keeps a broken percent sign', 'a=100%', { a: '100%' }],
  ['accepts the names of object members', '__proto__=1&constructor=2', { ['__proto__']: '1', constructor: '2' }],
] as const)('a query parser %s', async ([, query, expected]) => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, `/things?${query}`)
  expect(gateway.last().event.queryStringParameters).toEqual(expected)
})

test('lower-cases header names, and joins repeated headers by commas', async () => {
  await using gateway = await startRecorder()
  const repeatedHeaders = [
    'X-Many: one',
    'x-many: two',
    'Authorization: a',
    'Authorization: b',
    'Cookie: a=1; b=2',
    'Cookie: c=3',
  ]
  const lines = ['Host: localhost', 'Connection: close', ...repeatedHeaders, 'X-Forwarded-For: 203.0.113.7']
  await sendBytes(gateway.url, `GET /things HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  const { event } = gateway.last()
  expect(event.headers).toMatchObject({
    'x-many': 'one,two',
    authorization: 'a,b',
    'x-forwarded-for': '203.0.113.7,127.0.0.1',
  })
  expect(event.cookies).toEqual(['a=1', 'b=2', 'c=3'])
})

test.for([
  ['application/json', false],
  ['application/json; charset=utf-8', false],
  ['APPLICATION/JSON', false],
  ['application/xml', false],
  ['text/plain', false],
  ['application/octet-stream', true],
  ['application/problem+json', true],
  ['', true],
] as const)('encodes a body of type %j in Base64: %s', async ([type, isBase64Encoded]) => {
  await using gateway = await startRecorder()
  const bytes = Buffer.from('{"ü":1}')
  const headers = type === '' ? {} : { 'content-type': type }
  const [response] = await once(request(`${gateway.url}/things`, { method: 'POST', headers }).end(bytes), 'response')
  response.resume()
  const expected = bytes.toString(isBase64Encoded ? 'base64' : 'utf8')
  expect(gateway.last().event).toMatchObject({ body: expected, isBase64Encoded })
})

test('passes the trace of the caller in the header of API Gateway', async () => {
  await using gateway = await startRecorder()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await fetch(`${gateway.url}/things`, { headers: { traceparent } })
  expect(gateway.last().event.headers).toMatchObject({
    traceparent,
    'x-amzn-trace-id': 'Root=1-0af76519-16cd43dd8448eb211c80319c',
  })
})

const platformRoutes = routePaths.map(([path, functionName]) => ({ functionName, method: 'ANY', path }))

test.for(routes)(
  'routes $method $endpoint.path to its function',
  ({ function: functionName, method, endpoint: { path } }) => {
    const route = createRouter(platformRoutes, 'portal')
    const examplePath = path.replaceAll(/{\w+}/g, 'some-id')
    expect(route(method, examplePath)).toMatchObject({ functionName, routeKey: `ANY ${path}` })
  },
)

const partRoute = 'GET /things/{thingId}/parts/{partId}'

test.for([
  ['a literal segment before a parameter', 'GET', '/things/catalog', 'catalog', 'GET /things/catalog', undefined],
  ['a parameter elsewhere', 'GET', '/things/other', 'things', 'GET /things/{id}', { id: 'other' }],
  ['a nested parameter', 'GET', '/things/catalog/parts/7', 'parts', partRoute, { thingId: 'catalog', partId: '7' }],
  ['the default for an unknown path', 'GET', '/other', 'fallback', '$default', undefined],
  ['the default for another method', 'DELETE', '/things', 'fallback', '$default', undefined],
  ['the default for HEAD', 'HEAD', '/things', 'fallback', '$default', undefined],
  ['the default for an empty parameter', 'GET', '/things/', 'fallback', '$default', undefined],
  ['the default for a longer path', 'GET', '/things/a/parts', 'fallback', '$default', undefined],
  ['a parameter of another method', 'DELETE', '/things/catalog', 'remove', 'DELETE /things/{id}', { id: 'catalog' }],
  ['a greedy route', 'GET', '/things/a/more/b/c', 'more', 'ANY /things/{id}/more/{proxy+}', { id: 'a', proxy: 'b/c' }],
  ['the longest greedy route', 'PATCH', '/any/deep/b', 'deep', 'ANY /any/deep/{proxy+}', { proxy: 'b' }],
  ['a shorter greedy route', 'GET', '/any/deep', 'any', 'ANY /any/{proxy+}', { proxy: 'deep' }],
  ['the greedy route of its method', 'POST', '/any/x', 'posted', 'POST /any/{proxy+}', { proxy: 'x' }],
  ['a full match of ANY before a greedy route', 'GET', '/any/full', 'full', 'ANY /any/full', undefined],
  ['a full match before the greedy route of its method', 'POST', '/any/full', 'full', 'ANY /any/full', undefined],
  ['a greedy route with its slashes unchanged', 'HEAD', '/any/b//c/', 'any', 'ANY /any/{proxy+}', { proxy: 'b//c/' }],
  ['the default for an empty greedy parameter', 'GET', '/any/', 'fallback', '$default', undefined],
  ['the default for the parent of a greedy route', 'GET', '/any', 'fallback', '$default', undefined],
  ['the default for the root', 'GET', '/', 'fallback', '$default', undefined],
  ['the default for names of object members', 'GET', '/constructor', 'fallback', '$default', undefined],
] as const)('routes a request to %s', ([, method, path, functionName, routeKey, pathParameters]) => {
  const match = createRouter(sampleRoutes, 'fallback')(method, path)
  expect(match).toEqual({ functionName, routeKey, ...(pathParameters && { pathParameters }) })
})

async function respondWith(result: unknown) {
  await using gateway = await startGateway(async () => result)
  const response = await fetch(`${gateway.url}/things`)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString(), logged: gateway.logged }
}

test('returns the status, headers, cookies and body of a function, and a request id', async () => {
  const connection = { 'content-length': '999', 'transfer-encoding': 'chunked', 'keep-alive': 'timeout=1', empty: null }
  const headers = { 'X-One': 'a', 'X-Number': 5, ...connection }
  const output = await respondWith({ statusCode: 201, headers, cookies: ['a=1; HttpOnly', 'b=2'], body: 'grüß' })
  expect([output.status, output.text]).toEqual([201, 'grüß'])
  expect(output.headers.get('x-one')).toBe('a')
  expect(output.headers.get('x-number')).toBe('5')
  expect(output.headers.get('apigw-requestid')).toMatch(/^[\da-f-]{36}$/)
  expect(output.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(output.headers.get('content-length')).toBe('6')
  for (const name of ['transfer-encoding', 'empty']) expect(output.headers.has(name)).toBe(false)
  expect(output.headers.getSetCookie()).toEqual(['a=1; HttpOnly', 'b=2'])
  const body = Buffer.from([0, 255, 7]).toString('base64')
  expect([...(await respondWith({ statusCode: 200, body, isBase64Encoded: true })).bytes]).toEqual([0, 255, 7])
})

test.for([204, 304])('a response with status %i has no body and no length', async (statusCode) => {
  const output = await respondWith({ statusCode, body: '' })
  expect(output.status).toBe(statusCode)
  expect(output.headers.has('content-length')).toBe(false)
})

test.for([
  ['an object without a status', { hello: 1 }, '{"hello":1}'],
  ['a string', 'hello', 'hello'],
  ['a list', [1, 2], '[1,2]'],
  ['nothing', undefined, ''],
] as const)('returns %s as a JSON body with status 200', async ([, result, text]) => {
  const output = await respondWith(result)
  expect(output.status).toBe(200)
  expect(output.headers.get('content-type')).toBe('application/json')
  expect(output.text).toBe(text)
})

test.for([
  ['an invalid status', { statusCode: 'many' }],
  ['an informational status', { statusCode: 100 }],
  ['a status above 599', { statusCode: 999 }],
  ['a body that is not a string', { statusCode: 200, body: { a: 1 } }],
  ['headers that are not an object', { statusCode: 200, headers: 'a: b' }],
  ['a header that is not a string', { statusCode: 200, headers: { a: { b: 1 } } }],
  ['a header with a line break', { statusCode: 200, headers: { a: 'b\r\nx: y' } }],
  ['a header name with a space', { statusCode: 200, headers: { 'a b': 'c' } }],
  ['cookies that are not a list', { statusCode: 200, cookies: 'a=1' }],
  ['a response above 6 MB', { statusCode: 200, body: 'x'.repeat(6 * 1024 * 1024) }],
] as const)('responds with 500 to %s', async ([, result]) => {
  const output = await respondWith(result)
  expect(output.status).toBe(500)
  expect(JSON.parse(output.text)).toEqual({
    error: 'internal_error',
    message: expect.any(String),
    traceId: output.headers.get('x-trace-id'),
  })
  expect(output.logged).toMatchObject([{ message: 'a request failed', details: { level: 'error' } }])
})

test('logs the error of a function, and does not return it', async () => {
  await using gateway = await startGateway(() => Promise.reject(new Error('the cause')))
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const response = await fetch(`${gateway.url}/things`, { headers: { traceparent } })
  const text = await response.text()
  expect(response.status).toBe(500)
  expect(text).not.toContain('cause')
  expect(JSON.parse(text)).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c' })
  expect(gateway.logged).toMatchObject([{ details: { traceId: '0af7651916cd43dd8448eb211c80319c' } }])
})

const forwardedHeaders = (fields: Record<string, string>) =>
  Object.entries({ host: 'inside:8080', connection: 'close', ...fields })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')

test.for([
  ['ignores headers of other peers', '', '203.0.113.9', 'https', '127.0.0.1', 'http', 'inside:8080'],
  ['reads them from a trusted proxy', '127.0.0.1', '203.0.113.9', 'https', '203.0.113.9', 'https', 'portal.example'],
  [
    'ignores entries that the client sent',
    '127.0.0.1',
    '1.1.1.1, 203.0.113.9',
    'http',
    '203.0.113.9',
    'http',
    'portal.example',
  ],
  [
    'skips trusted proxies',
    '127.0.0.0/8,10.0.0.0/8',
    '203.0.113.9,10.1.2.3',
    'http,https',
    '203.0.113.9',
    'https',
    'portal.example',
  ],
  [
    'keeps the outermost proxy if all are trusted',
    '127.0.0.1,10.0.0.0/8',
    '10.1.2.3,10.3.2.1',
    'HTTPS',
    '10.1.2.3',
    'https',
    'portal.example',
  ],
  [
    'stops at an entry without an address',
    '127.0.0.1,10.0.0.0/8',
    '203.0.113.9,unknown,10.1.2.3',
    '',
    '10.1.2.3',
    'http',
    'portal.example',
  ],
  [
    'accepts ports and IPv6',
    '127.0.0.1,2001:db8::/32',
    '[2001:db9::1]:443,[2001:db8::1]',
    'https',
    '2001:db9::1',
    'https',
    'portal.example',
  ],
  [
    'accepts IPv4 in IPv6',
    '::ffff:127.0.0.1,127.0.0.1',
    '::ffff:203.0.113.9',
    'https',
    '203.0.113.9',
    'https',
    'portal.example',
  ],
  ['uses the peer without the header', '127.0.0.1', '', '', '127.0.0.1', 'http', 'portal.example'],
] as const)(
  'finds the client behind proxies: %s',
  async ([, proxies, addresses, protocol, address, expectedProtocol, host]) => {
    await using gateway = await startRecorder(
      sampleRoutes,
      parseSettings({ PLAT_TRUSTED_PROXIES: proxies }).trustedProxies,
    )
    const fields = { 'x-forwarded-for': addresses, 'x-forwarded-proto': protocol, 'x-forwarded-host': 'portal.example' }
    await sendBytes(gateway.url, `GET /things HTTP/1.1\r\n${forwardedHeaders(fields)}\r\n`)
    const { headers, requestContext } = gateway.last().event
    expect(requestContext.http.sourceIp).toBe(address)
    expect(headers).toMatchObject({ host, 'x-forwarded-proto': expectedProtocol })
  },
)
