import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createPlainServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { callInstance, sendRequest } from '@platform/worker/runtimes/instance-request'
import type { ModuleResponse, RequestLimits } from '@platform/worker/runtimes/port'
import { tokenHeader } from '@platform/modules/protocol'
import { expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { textOf } from '../../support/local-runtime.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const limits: RequestLimits = { timeoutMs: 20_000, maxBytes: 1000 }
const get = { method: 'GET', path: '/' }

async function serve(onConnection: (socket: Socket) => void, http?: RequestListener) {
  const folder = await temporaryFolder()
  const socketPath = join(folder.path, 'm')
  const server = http ? createServer(http) : createPlainServer(onConnection)
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  await once(server.listen(socketPath), 'listening')
  return {
    socketPath,
    waitUntilIdle: () => waitFor('all connections are closed', async () => sockets.size === 0),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      await folder[Symbol.asyncDispose]()
    },
  }
}

const serveHttp = (listener: RequestListener) => serve(() => {}, listener)

const sending = (bytes: string) => serve((socket) => socket.once('data', () => socket.write(bytes)))

test('transfers a whole request and its response', async () => {
  await using server = await serveHttp((incoming, outgoing) => {
    const { method, url, headers } = incoming
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const request = { method, url, type: headers['content-type'], body: Buffer.concat(chunks).toString() }
      outgoing.writeHead(201, { 'x-one': ['a', 'b'] }).end(JSON.stringify(request))
    })
  })
  const response = await sendRequest(
    server,
    { method: 'PUT', path: '/a%20b?c=d', headers: { 'content-type': 'text/x' }, body: Buffer.from('é') },
    limits,
  )
  expect(response.status).toBe(201)
  expect(response.headers['x-one']).toBe('a, b')
  expect(JSON.parse(textOf(response))).toEqual({ method: 'PUT', url: '/a%20b?c=d', type: 'text/x', body: 'é' })
  await server.waitUntilIdle()
})

test('sends the token of the platform, and no other', async () => {
  await using server = await serveHttp(({ rawHeaders }, outgoing) => outgoing.end(JSON.stringify(rawHeaders)))
  const connection = { Connection: 'keep-alive, x-platform-token', 'Transfer-Encoding': 'chunked' }
  const headers = { 'X-Platform-Token': 'forged', ...connection }
  const response = await callInstance(server.socketPath, 'ours', { ...get, headers }, limits)
  const sentHeaders: string[] = JSON.parse(textOf(response)).map((text: string) => text.toLowerCase())
  expect(sentHeaders.filter((_, index) => sentHeaders[index - 1] === tokenHeader)).toEqual(['ours'])
  expect(sentHeaders.filter((_, index) => sentHeaders[index - 1] === 'connection')).toEqual(['close'])
  expect(sentHeaders).not.toContain('transfer-encoding')
})

test('removes cookies and connection headers from a response', async () => {
  await using server = await serveHttp((_incoming, outgoing) => {
    outgoing.writeHead(200, {
      'set-cookie': ['session=stolen', 'other=1'],
      connection: 'close, X-Hop',
      'x-hop': '1',
      'keep-alive': 'timeout=5',
      'proxy-authenticate': 'Basic',
      'x-kept': '2',
    })
    outgoing.end()
  })
  const { headers } = await sendRequest(server, get, limits)
  expect(Object.keys(headers).toSorted()).toEqual(['date', 'x-kept'])
})

test.each([
  ['ends in its head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['has a too long head', `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`],
  ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['ends in its body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab'],
  ['ends in a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab'],
  ['changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['is empty', ''],
])('reports a response that %s as a crash', async (_name, bytes) => {
  await using server = await serve((socket) => socket.once('data', () => socket.end(bytes)))
  const reportedError = { name: 'RuntimeError', problem: 'crashed' }
  await expect(sendRequest(server, get, limits)).rejects.toMatchObject(reportedError)
  await server.waitUntilIdle()
})

test.each([
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\n'],
  ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab'],
  ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
])('times out and disconnects if it receives only %s', async (_name, bytes) => {
  await using server = await sending(bytes)
  await expect(sendRequest(server, get, { ...limits, timeoutMs: 100 })).rejects.toMatchObject({ problem: 'timeout' })
  await server.waitUntilIdle()
})

test('times out during a response that never ends', async () => {
  await using server = await serve((socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    const timer = setInterval(() => socket.write('x'), 10)
    socket.on('close', () => clearInterval(timer))
  })
  const sending = sendRequest(server, get, { timeoutMs: 200, maxBytes: 1e9 })
  await expect(sending).rejects.toMatchObject({ problem: 'timeout' })
  await server.waitUntilIdle()
})

test('accepts a response of exactly the limit, and rejects one byte more', async () => {
  await using server = await serveHttp(({ url }, outgoing) => {
    outgoing.end(Buffer.alloc(Number(url?.slice(1))))
  })
  const responseOfSize = (bytes: number): Promise<ModuleResponse> =>
    sendRequest(server, { method: 'GET', path: `/${bytes}` }, { ...limits, maxBytes: 100_000 })
  expect((await responseOfSize(100_000)).body.length).toBe(100_000)
  await expect(responseOfSize(100_001)).rejects.toMatchObject({ problem: 'too_large' })
  await server.waitUntilIdle()
})

test('aborts a response without end', async () => {
  await using server = await serveHttp((_incoming, outgoing) => {
    const send = () => {
      while (!outgoing.destroyed && outgoing.write(Buffer.alloc(65_536)));
    }
    outgoing.on('drain', send)
    send()
  })
  const sending = sendRequest(server, get, { ...limits, maxBytes: 10_000_000 })
  await expect(sending).rejects.toMatchObject({ problem: 'too_large' })
  await server.waitUntilIdle()
})

test('is unavailable if the socket does not exist', async () => {
  await using folder = await temporaryFolder()
  const socketPath = join(folder.path, 'absent')
  await expect(sendRequest({ socketPath }, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
})

test.each([
  { method: 'GET', path: '/a b' },
  { method: 'GET', path: '/a\r\nx: y' },
  { method: 'G ET', path: '/' },
  { method: 'GET', path: '/', headers: { 'x-one': 'a\r\nx-two: b' } },
  { method: 'GET', path: '/', headers: { 'x one': 'a' } },
])('rejects a request that is invalid in HTTP: %j', async (request) => {
  await using server = await sending('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  await expect(sendRequest(server, request, limits)).rejects.toMatchObject({ problem: 'refused' })
})
