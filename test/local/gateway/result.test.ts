import { expect, test } from 'vitest'
import { startGateway } from './support.ts'

async function answerTo(result: unknown) {
  await using gateway = await startGateway(async () => result)
  const response = await fetch(`${gateway.url}/things`)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString(), logged: gateway.logged }
}

test('status, headers and body of a function arrive, and the request has an id', async () => {
  const answer = await answerTo({ statusCode: 201, headers: { 'X-One': 'a', 'X-Number': 5 }, body: 'grüß' })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('x-one')).toBe('a')
  expect(answer.headers.get('x-number')).toBe('5')
  expect(answer.headers.get('apigw-requestid')).toMatch(/^[\da-f-]{36}$/)
  expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(answer.text).toBe('grüß')
})

test('a body in Base64 arrives as bytes', async () => {
  const answer = await answerTo({
    statusCode: 200,
    body: Buffer.from([0, 255, 7]).toString('base64'),
    isBase64Encoded: true,
  })
  expect([...answer.bytes]).toEqual([0, 255, 7])
})

test('each cookie becomes a header of its own', async () => {
  const answer = await answerTo({ statusCode: 200, cookies: ['a=1; HttpOnly', 'b=2'], body: '' })
  expect(answer.headers.getSetCookie()).toEqual(['a=1; HttpOnly', 'b=2'])
})

test.for([204, 304])('an answer with status %i has neither body nor length', async (statusCode) => {
  const answer = await answerTo({ statusCode, body: '' })
  expect(answer.status).toBe(statusCode)
  expect(answer.headers.has('content-length')).toBe(false)
})

test('headers of the connection are the gateway’s own', async () => {
  const headers = { 'content-length': '999', 'transfer-encoding': 'chunked', 'keep-alive': 'timeout=1', empty: null }
  const answer = await answerTo({ statusCode: 200, headers, body: 'four' })
  expect(answer.headers.get('content-length')).toBe('4')
  expect(answer.headers.has('transfer-encoding')).toBe(false)
  expect(answer.headers.has('empty')).toBe(false)
})

test.for([
  ['an object without a status', { hello: 1 }, '{"hello":1}'],
  ['a text', 'hello', 'hello'],
  ['a list', [1, 2], '[1,2]'],
  ['nothing', undefined, ''],
] as const)('%s is a JSON body with status 200', async ([, result, text]) => {
  const answer = await answerTo(result)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.text).toBe(text)
})

test.for([
  ['a status that is no number', { statusCode: 'many' }],
  ['an informational status', { statusCode: 100 }],
  ['a status beyond all', { statusCode: 999 }],
  ['a body that is no text', { statusCode: 200, body: { a: 1 } }],
  ['headers that are no object', { statusCode: 200, headers: 'a: b' }],
  ['a header that is no text', { statusCode: 200, headers: { a: { b: 1 } } }],
  ['a header with a line break', { statusCode: 200, headers: { a: 'b\r\nx: y' } }],
  ['a header name with a space', { statusCode: 200, headers: { 'a b': 'c' } }],
  ['cookies that are no list', { statusCode: 200, cookies: 'a=1' }],
  ['an answer above 6 MB', { statusCode: 200, body: 'x'.repeat(6 * 1024 * 1024) }],
] as const)('%s is a failure of the function', async ([, result]) => {
  const answer = await answerTo(result)
  expect(answer.status).toBe(500)
  expect(JSON.parse(answer.text)).toEqual({
    error: 'internal_error',
    message: expect.any(String),
    traceId: answer.headers.get('x-trace-id'),
  })
  expect(answer.logged).toMatchObject([{ message: 'a request failed' }])
})

test('what a function throws is logged and not told', async () => {
  await using gateway = await startGateway(() => Promise.reject(new Error('the secret of the house')))
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const response = await fetch(`${gateway.url}/things`, { headers: { traceparent } })
  const text = await response.text()
  expect(response.status).toBe(500)
  expect(text).not.toContain('secret')
  expect(JSON.parse(text)).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c' })
  expect(gateway.logged).toMatchObject([{ details: { traceId: '0af7651916cd43dd8448eb211c80319c' } }])
})
