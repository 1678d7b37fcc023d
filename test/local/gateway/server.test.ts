import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { PlatformError } from '@platform/core/error'
import { FunctionTimeout } from '@platform/local/functions/errors'
import { createByteBudget } from '@platform/local/gateway/byte-budget'
import type { HttpEvent } from '@platform/local/gateway/event'
import { createRouter } from '@platform/local/gateway/routes'
import { listen } from '@platform/local/gateway/server'
import { expect, test } from 'vitest'
import {
  errorOf,
  openConnection,
  sampleRoutes,
  sendBytes,
  sendTarget,
  startGateway,
  startRecorder,
  privateMetrics,
} from './support.ts'

const plainRequest = 'GET /things HTTP/1.1\r\nHost: a\r\n\r\n'

async function startBlockedGateway() {
  const invoked = Promise.withResolvers<void>()
  const result = Promise.withResolvers<unknown>()
  const gateway = await startGateway((_name, event) => {
    if (event.rawPath === '/things/quick') return Promise.resolve({ statusCode: 200, body: 'quick' })
    invoked.resolve()
    return result.promise
  })
  return { ...gateway, invoked: invoked.promise, finish: result.resolve }
}

test('an unopened gateway is alive, and responds to other requests with 503 starting', async () => {
  const gateway = await listen('127.0.0.1', 0)
  const liveResponse = await fetch(`${gateway.url}/health/live`)
  expect([liveResponse.status, await liveResponse.json()]).toEqual([200, { status: 'ok' }])
  expect((await fetch(`${gateway.url}/health/live`, { method: 'HEAD' })).status).toBe(200)
  for (const path of ['/health/ready', '/health/startup', '/things', '/nowhere', '/health/lively']) {
    const response = await fetch(gateway.url + path)
    expect(response.status, path).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ error: 'starting', traceId: response.headers.get('x-trace-id') })
  }
  const context = { route: createRouter(sampleRoutes, 'none'), log: () => undefined }
  gateway.open({ ...context, metrics: privateMetrics, invoke: async () => ({ statusCode: 200 }) })
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
  await gateway.drain(0)
})

test('a drain completes running requests, closes idle connections, and accepts no more', async () => {
  await using gateway = await startBlockedGateway()
  const silentConnection = await openConnection(gateway.url)
  const idleConnection = await openConnection(gateway.url)
  idleConnection.write(plainRequest.replace('/things', '/things/quick'))
  await once(idleConnection, 'data')
  const busyConnection = await openConnection(gateway.url)
  busyConnection.write(plainRequest)
  await gateway.invoked

  const drained = gateway.drain(60_000)
  await Promise.all([once(silentConnection, 'close'), once(idleConnection, 'close')])
  await expect(fetch(`${gateway.url}/things`)).rejects.toThrow('fetch failed')
  gateway.finish({ statusCode: 200, body: 'x'.repeat(100_000) })
  const response = await text(busyConnection)
  expect(response).toContain('x'.repeat(100_000))
  expect(response.toLowerCase()).toContain('connection: close')
  await drained
})

test('a drain closes connections that exceed its limit', async () => {
  await using gateway = await startBlockedGateway()
  const failed = expect(fetch(`${gateway.url}/things`)).rejects.toThrow('fetch failed')
  await gateway.invoked
  await gateway.drain(10)
  await failed
})

const mebibyte = 1024 * 1024

function post(url: string, body: Buffer, type = 'application/json') {
  return fetch(`${url}/things`, { method: 'POST', body, headers: { 'content-type': type } })
}

test('rejects a body above 4 MiB with 413, also in chunks', async () => {
  await using gateway = await startRecorder()
  const response = await post(gateway.url, Buffer.alloc(4 * mebibyte + 1, 'x'))
  expect(response.status).toBe(413)
  const traceId = response.headers.get('x-trace-id')
  expect(await response.json()).toEqual({ error: 'payload_too_large', message: expect.any(String), traceId })

  const upload = request(`${gateway.url}/things`, { method: 'POST' })
  upload.on('error', () => undefined)
  for (let sent = 0; sent < 5; sent++) upload.write(Buffer.alloc(mebibyte))
  upload.end()
  const [incoming] = await once(upload, 'response')
  incoming.resume()
  expect(incoming.statusCode).toBe(413)
  expect(gateway.invocations).toEqual([])
})

test.for([
  ['4 MiB of text', 'application/json', 4, 204, 'x'],
  ['4 MiB of bytes', 'application/octet-stream', 4, 204, 'x'],
  ['4 MiB of text with JSON escapes', 'application/json', 4, 413, '"'],
] as const)('limits the event to 6 MB: %s', async ([, type, sizeMebibytes, status, fill]) => {
  await using gateway = await startRecorder()
  const response = await post(gateway.url, Buffer.alloc(sizeMebibytes * mebibyte, fill), type)
  expect(response.status).toBe(status)
})

const kibibyte = 1024

test.for([
  ['a declared length', { 'content-length': 64 * kibibyte + 1 }, 0],
  ['chunks', {}, 65 * kibibyte],
  ['many small chunks', {}, 64 * kibibyte + 1],
] as const)('authenticates the caller before it reads more than 64 KiB: %s', async ([name, headers, sentBytes]) => {
  const events: HttpEvent[] = []
  await using gateway = await startGateway(async (_name, event) => {
    events.push(event)
    return { statusCode: 401, body: 'who?' }
  })
  const upload = request(`${gateway.url}/things`, { method: 'POST', headers })
  upload.on('error', () => undefined)
  const chunkBytes = name === 'many small chunks' ? 16 : kibibyte
  for (let sent = 0; sent < sentBytes; sent += chunkBytes) upload.write(Buffer.alloc(chunkBytes))
  upload.flushHeaders()
  const [response] = await once(upload, 'response')
  expect([response.statusCode, await text(response)]).toEqual([401, 'who?'])
  expect(events).toMatchObject([{ isBodyPending: true }])
  expect(events[0]).not.toHaveProperty('body')
  upload.destroy()
})

test('a full budget evicts the oldest charges that can be evicted, and frees what is released', () => {
  const budget = createByteBudget(10)
  const evictedNames: string[] = []
  const open = (name: string, bytes: number) => {
    const charge = budget.open()
    charge.set(bytes, () => evictedNames.push(name))
    return charge
  }
  const [pinned, second] = [open('pinned', 2), open('second', 4)]
  pinned.set(4)
  open('third', 2)
  expect(evictedNames).toEqual([])
  second.set(5, () => evictedNames.push('second, grown'))
  open('large', 11)
  expect(evictedNames).toEqual(['second, grown', 'third', 'large'])
  pinned.release()
  open('last', 10)
  expect(evictedNames).toHaveLength(3)
})

test.for([
  ['/things/%', 'a lone percent sign'],
  ['/things/%zz', 'a percent sign without digits'],
  ['/things/%ff', 'invalid UTF-8'],
  ['/things/%c0%af', 'an overlong slash'],
  ['/things/%ed%a0%80', 'a lone surrogate'],
  ['*', 'an asterisk'],
  ['things', 'a path without a slash'],
])('rejects the target %s with 400: %s', async ([target]) => {
  await using gateway = await startRecorder()
  const reply = errorOf(await sendTarget(gateway.url, target ?? ''))
  expect(reply.status).toBe(400)
  expect(reply.traceId).toBe(reply.headerTraceId)
  expect(gateway.invocations).toEqual([])
})

test.for([
  ['a missing request line', 'hello\r\n\r\n', 400],
  ['bytes of a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001', 400],
  ['a control character in a header', 'GET /things HTTP/1.1\r\nHost: a\r\nx: \u0000\r\n\r\n', 400],
  ['a folded header', 'GET /things HTTP/1.1\r\nHost: a\r\nx: a\r\n b\r\n\r\n', 400],
  ['a missing host', 'GET /things HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
  ['two hosts', 'GET /things HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 400],
  ['two lengths', 'POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
  [
    'both a length and chunks, as in request smuggling',
    'POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  ['an invalid chunk length', 'POST /things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
  ['an unknown method', 'BREW /things HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 404],
  ['headers above 10 KB', `GET /things HTTP/1.1\r\nHost: a\r\nx: ${'x'.repeat(10_240)}\r\n\r\n`, 413],
  ['a target above 10 KB', `GET /${'x'.repeat(10_240)} HTTP/1.1\r\nHost: a\r\n\r\n`, 413],
] as const)('rejects %s with an error body, and closes the connection', async ([, bytes, status]) => {
  await using gateway = await startRecorder()
  const reply = errorOf(await sendBytes(gateway.url, bytes))
  expect(reply.status).toBe(status)
  expect(reply.traceId).toMatch(/^[\da-f]{32}$/)
  expect(reply.headerTraceId).toBe(reply.traceId)
  expect(gateway.invocations).toEqual([])
})

test('does not respond to malformed bytes before an earlier request', async () => {
  await using gateway = await startBlockedGateway()
  const bytes = sendBytes(gateway.url, 'GET /things HTTP/1.1\r\nHost: a\r\n\r\nnonsense\r\n\r\n')
  await gateway.invoked
  gateway.finish({ statusCode: 200 })
  expect(await bytes.catch(() => '')).not.toMatch(/400 Bad Request/)
})

test.for(['CONNECT a:1', 'GET /things', 'nonsense'])(
  'survives a caller that disconnects after %j',
  async (beginning) => {
    await using gateway = await startRecorder()
    const connection = await openConnection(gateway.url)
    connection.write(`${beginning} HTTP/1.1\r\nHost: a\r\n\r\n`)
    await once(connection, 'data')
    connection.write('more\r\n\r\n')
    connection.resetAndDestroy()
    expect((await fetch(`${gateway.url}/things`)).status).toBe(204)
  },
)

test('does not log a caller that disconnects during an upload', async () => {
  await using gateway = await startRecorder()
  const connection = await openConnection(gateway.url)
  connection.write('POST /things HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf')
  await fetch(`${gateway.url}/things`)
  connection.resetAndDestroy()
  await once(connection, 'close')
  await gateway.drain(60_000)
  expect(gateway.logged).toEqual([])
})

test.for([
  [new FunctionTimeout('things', 30_000), 503, '2', 'database_unavailable'],
  [new PlatformError('rate_limited'), 429, null, 'rate_limited'],
] as const)('responds to %s with %i', async ([error, status, retryAfter, code]) => {
  await using gateway = await startGateway(() => Promise.reject(error))
  const response = await fetch(`${gateway.url}/things`)
  expect([response.status, response.headers.get('retry-after')]).toEqual([status, retryAfter])
  expect(await response.json()).toMatchObject({ error: code, traceId: expect.any(String) })
})
