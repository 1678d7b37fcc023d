import { request } from 'node:http'
import { expect, test } from 'vitest'
import { sendBytes, sendTarget, startRecorder } from './support.ts'

test('an event has the shape that API Gateway documents for payload format 2.0', async () => {
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

test('what a request does not have is absent from its event', async () => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, '/things')
  const { event } = gateway.last()
  for (const name of ['cookies', 'queryStringParameters', 'pathParameters', 'body']) {
    expect(event).not.toHaveProperty(name)
  }
  expect(event.rawQueryString).toBe('')
  expect(event.requestContext.http.userAgent).toBe('')
})

test.for([
  ['a plain path', '/things/x', '/things/x', ''],
  ['an encoded slash', '/things/a%2Fb', '/things/a/b', ''],
  ['an encoded percent sign, once', '/things/%2541', '/things/%41', ''],
  ['encoded UTF-8', '/things/%C3%A9', '/things/é', ''],
  ['an encoded question mark', '/things/a%3Fb?c', '/things/a?b', 'c'],
  ['a second question mark', '/things?a=1?b', '/things', 'a=1?b'],
  ['dot segments, which stay', '/things/../x', '/things/../x', ''],
  ['two slashes, which stay', '//things', '//things', ''],
  ['a plus sign in the path, which stays', '/things/a+b', '/things/a+b', ''],
  ['a trailing slash, which stays', '/things/', '/things/', ''],
  ['a target in absolute form', 'http://other.example/things?x=1', '/things', 'x=1'],
  ['an origin without a path', 'http://other.example', '/', ''],
])('the path is decoded and the query is not: %s', async ([, target, path, query]) => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, target ?? '')
  const { event } = gateway.last()
  expect(event).toMatchObject({ rawPath: path, rawQueryString: query, requestContext: { http: { path } } })
})

test.for([
  ['decodes names and values', 'a%20b=c%26d', { 'a b': 'c&d' }],
  ['reads a plus sign as a space', 'a=b+c', { a: 'b c' }],
  ['joins duplicates by commas, in order', 'a=2&b=x&a=1', { a: '2,1', b: 'x' }],
  ['keeps a parameter without a value', 'a&b=', { a: '', b: '' }],
  ['keeps a broken percent sign', 'a=100%', { a: '100%' }],
  [
    'takes the name of an object’s own machinery',
    '__proto__=1&constructor=2',
    { ['__proto__']: '1', constructor: '2' },
  ],
] as const)('a query %s', async ([, query, expected]) => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, `/things?${query}`)
  expect(gateway.last().event.queryStringParameters).toEqual(expected)
})

test('headers are in lower case, and those that come twice are joined by commas', async () => {
  await using gateway = await startRecorder()
  const lines = [
    'X-Many: one',
    'x-many: two',
    'Authorization: a',
    'Authorization: b',
    'Cookie: a=1; b=2',
    'Cookie: c=3',
  ]
  const forwarded = 'X-Forwarded-For: 203.0.113.7'
  await sendBytes(
    gateway.url,
    `GET /things HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${[...lines, forwarded].join('\r\n')}\r\n\r\n`,
  )
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
  ['application/javascript', false],
  ['text/plain', false],
  ['application/octet-stream', true],
  ['application/x-www-form-urlencoded', true],
  ['application/problem+json', true],
  ['image/png', true],
  ['', true],
] as const)('a body of type %j is in Base64: %s', async ([type, isBase64Encoded]) => {
  await using gateway = await startRecorder()
  const bytes = Buffer.from('{"ü":1}')
  const post = request(`${gateway.url}/things`, {
    method: 'POST',
    headers: type === '' ? {} : { 'content-type': type },
  })
  post.end(bytes)
  await new Promise((resolve) => post.on('response', (response) => response.resume().on('end', resolve)))
  const expected = bytes.toString(isBase64Encoded ? 'base64' : 'utf8')
  expect(gateway.last().event).toMatchObject({ body: expected, isBase64Encoded })
})

test('binary bytes arrive as they were sent', async () => {
  await using gateway = await startRecorder()
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  await fetch(`${gateway.url}/things`, { method: 'POST', body: bytes })
  expect(Buffer.from(gateway.last().event.body ?? '', 'base64')).toEqual(Buffer.from(bytes))
})

test('a valid trace of the caller goes on in the header that API Gateway adds', async () => {
  await using gateway = await startRecorder()
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await fetch(`${gateway.url}/things`, { headers: { traceparent } })
  expect(gateway.last().event.headers).toMatchObject({
    traceparent,
    'x-amzn-trace-id': 'Root=1-0af76519-16cd43dd8448eb211c80319c',
  })
})
