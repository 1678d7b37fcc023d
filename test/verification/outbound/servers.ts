import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, createServer, isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { startHostileIssuer } from '../../support/hostile-issuer.ts'
import { type ServerReply, startServer } from '../../support/http-server.ts'

/** Whatever connects to it came where nobody may: it listens on every address of this machine. */
export async function startCanary() {
  let hits = 0
  const server = createServer((socket) => {
    hits++
    socket.on('error', () => undefined).destroy()
  }).listen(0, '::')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  return { port, hits: () => hits, close: () => server.close() }
}

/** That a connection is seen, at several addresses of this machine. */
export async function isAwake({ port, hits }: Awaited<ReturnType<typeof startCanary>>): Promise<boolean> {
  const before = hits()
  for (const host of ['127.0.0.1', '127.1.2.3', '::1']) {
    const socket = connect(port, host)
    await once(socket.resume(), 'close')
  }
  return hits() === before + 3
}

const isOwn = (address: string): boolean =>
  (isIPv4(address) && address.startsWith('127.')) ||
  Object.values(networkInterfaces()).some((each) => each?.some((own) => own.address === address))

/** Watches every connection that this process begins, whether anybody is there or not: those to machines that may not be called. */
export function watchConnections(mayBeCalled: ReadonlySet<string>) {
  let seen = 0
  const forbidden: string[] = []
  subscribe('net.client.socket', ({ socket }: any) => {
    socket.on('connectionAttempt', (address: string, port: number) => {
      seen++
      if (!isOwn(address) && !mayBeCalled.has(address)) forbidden.push(`${address}:${port}`)
    })
  })
  return {
    forbidden,
    /** How many connections were begun, wherever they lead. */
    seen: () => seen,
  }
}

/** Servers that the platform may reach: one that leads on to where a test says, and an issuer. */
export async function startAllowed() {
  let answer: ServerReply = { status: 404 }
  const server = await startServer(() => answer)
  const issuer = await startHostileIssuer()
  const port = Number(new URL(server.url).port)
  let visits = 0
  subscribe('net.server.socket', (message: any) => {
    if (message.socket.localPort === port) visits++
  })
  return {
    host: server.host,
    url: server.url,
    /** How often the first one was connected to: not everybody speaks HTTP. */
    visits: () => visits,
    issuer,
    /** What it answers from now on. */
    answers: (reply: ServerReply) => {
      answer = reply
    },
    close: () => Promise.all([server[Symbol.asyncDispose](), issuer.server[Symbol.asyncDispose]()]),
  }
}

export type Allowed = Awaited<ReturnType<typeof startAllowed>>
