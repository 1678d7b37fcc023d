import { once } from 'node:events'
import { request } from 'node:http'
import { FunctionTimeout } from '@platform/local/functions/errors'
import { PlatformError } from '@platform/core/error'
import { expect, test } from 'vitest'
import { errorOf, openConnection, sendBytes, sendTarget, startGateway, startRecorder } from './support.ts'

const mebibyte = 1024 * 1024

function post(url: string, body: Buffer, type = 'application/json') {
  return fetch(`${url}/things`, { method: 'POST', body, headers: { 'content-type': type } })
}

test('a body above 10 MiB is refused with 413 and never reaches a function', async () => {
  await using gateway = await startRecorder()
  const response = await post(gateway.url, Buffer.alloc(10 * mebibyte + 1, 'x'))
  expect(response.status).toBe(413)
  expect(await response.json()).toEqual({
    error: 'payload_too_large',
    message: expect.any(String),
    traceId: response.headers.get('x-trace-id'),
  })
  expect(gateway.invocations).toEqual([])
})

test('a body of unknown length is refused once it is above 10 MiB', async () => {
  await using gateway = await startRecorder()
  const upload = request(`${gateway.url}/things`, { method: 'POST' })
  upload.on('error', () => undefined)
  for (let sent = 0; sent < 11; sent++) upload.write(Buffer.alloc(mebibyte))
  upload.end()
  const [response] = await once(upload, 'response')
  response.resume()
  expect(response.statusCode).toBe(413)
  expect(gateway.invocations).toEqual([])
})

test.for([
  ['a text of 5 MiB', 'application/json', 5, 204],
  ['a text of 6 MiB', 'application/json', 6, 413],
  ['bytes of 4 MiB, which Base64 lengthens', 'application/octet-stream', 4, 204],
  ['bytes of 5 MiB, which Base64 lengthens', 'application/octet-stream', 5, 413],
] as const)('Lambda takes 6 MB: %s', async ([, type, sizeMebibytes, status]) => {
  await using gateway = await startRecorder()
  const response = await post(gateway.url, Buffer.alloc(sizeMebibytes * mebibyte, 'x'), type)
  expect(response.status).toBe(status)
})

test('a text counts with its escapes', async () => {
  await using gateway = await startRecorder()
  expect((await post(gateway.url, Buffer.alloc(4 * mebibyte, '"'))).status).toBe(413)
})

test.for([
  ['/things/%', 'a lone percent sign'],
  ['/things/%zz', 'a percent sign without digits'],
  ['/things/%ff', 'bytes that are no UTF-8'],
  ['/things/%c0%af', 'an overlong slash'],
  ['/things/%ed%a0%80', 'a lone surrogate'],
  ['*', 'an asterisk'],
  ['things', 'a path without a slash'],
])('the target %s is refused with 400: %s', async ([target]) => {
  await using gateway = await startRecorder()
  const answer = errorOf(await sendTarget(gateway.url, target ?? ''))
  expect(answer.status).toBe(400)
  expect(answer.traceId).toBe(answer.headerTraceId)
  expect(gateway.invocations).toEqual([])
})

test.for([
  ['no request line', 'hello\r\n\r\n', 400],
  ['a request line without a version', 'GET /things\r\n\r\n', 400],
  ['an unknown version', 'GET /things HTTP/9.9\r\nHost: a\r\n\r\n', 400],
  ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['bytes of a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001', 400],
  ['a header without a colon', 'GET /things HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n', 400],
  ['a control character in a header', 'GET /things HTTP/1.1\r\nHost: a\r\nx: \u0000\r\n\r\n', 400],
  ['a folded header', 'GET /things HTTP/1.1\r\nHost: a\r\nx: a\r\n b\r\n\r\n', 400],
  ['no host', 'GET /things HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['two hosts', 'GET /things HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 400],
  ['two lengths', 'POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
  ['a negative length', 'POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n', 400],
  [
    'a length and chunks, as request smugglers send them',
    'POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  [
    'a chunk whose length is no number',
    'POST /things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    400,
  ],
  ['an unknown method', 'BREW /things HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  ['headers above 10 KB', `GET /things HTTP/1.1\r\nHost: a\r\nx: ${'x'.repeat(10_240)}\r\n\r\n`, 413],
  ['a target above 10 KB', `GET /${'x'.repeat(10_240)} HTTP/1.1\r\nHost: a\r\n\r\n`, 413],
] as const)('%s is refused with an error body, and the connection closes', async ([, bytes, status]) => {
  await using gateway = await startRecorder()
  const answer = errorOf(await sendBytes(gateway.url, bytes))
  expect(answer.status).toBe(status)
  expect(answer.traceId).toMatch(/^[\da-f]{32}$/)
  expect(answer.headerTraceId).toBe(answer.traceId)
  expect(gateway.invocations).toEqual([])
})

test('bytes behind a request are not answered before it', async () => {
  const invoked = Promise.withResolvers<void>()
  const result = Promise.withResolvers<unknown>()
  await using gateway = await startGateway(() => {
    invoked.resolve()
    return result.promise
  })
  const answer = sendBytes(gateway.url, 'GET /things HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n')
  await invoked.promise
  result.resolve({ statusCode: 200 })
  expect(await answer.catch(() => '')).not.toMatch(/400 Bad Request/)
})

test.for(['CONNECT a:1', 'GET /things', 'nonsense'])('a caller who breaks off %j does no harm', async (beginning) => {
  await using gateway = await startRecorder()
  const connection = await openConnection(gateway.url)
  connection.write(`${beginning} HTTP/1.1\r\nHost: a\r\n\r\n`)
  await once(connection, 'data')
  connection.write('more\r\n\r\n')
  connection.resetAndDestroy()
  expect((await fetch(`${gateway.url}/things`)).status).toBe(204)
})

test('a caller who breaks off an upload is not reported as a failure', async () => {
  await using gateway = await startRecorder()
  const connection = await openConnection(gateway.url)
  connection.write('POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf')
  await fetch(`${gateway.url}/things`)
  connection.resetAndDestroy()
  await once(connection, 'close')
  await gateway.drain(60_000)
  expect(gateway.logged).toEqual([])
})

test('a function that takes too long is answered for with 503 and the time to try again', async () => {
  await using gateway = await startGateway(() => Promise.reject(new FunctionTimeout('things', 30_000)))
  const response = await fetch(`${gateway.url}/things`)
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('2')
  expect(await response.json()).toMatchObject({ error: 'database_unavailable', traceId: expect.any(String) })
})

test('an unknown path goes to the default function, which knows how to refuse it', async () => {
  await using gateway = await startRecorder()
  await sendTarget(gateway.url, '/nowhere', 'DELETE')
  expect(gateway.last()).toMatchObject({
    functionName: 'fallback',
    event: { routeKey: '$default', rawPath: '/nowhere' },
  })
})

test('a fault of the gateway’s own keeps its code and status', async () => {
  await using gateway = await startGateway(() => Promise.reject(new PlatformError('rate_limited')))
  expect((await fetch(`${gateway.url}/things`)).status).toBe(429)
})
