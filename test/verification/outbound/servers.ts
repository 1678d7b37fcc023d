import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, createServer, isIPv4 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { startHostileIssuer } from '../../support/hostile-issuer.ts'
import { type ServerReply, startServer } from '../../support/http-server.ts'

/** Starts a server on every address of this machine. No outbound call may connect to it. */
export async function startCanary() {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.on('error', () => undefined).destroy()
  }).listen(0, '::')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  return { port, countConnections: () => connections, close: () => server.close() }
}

export type Canary = Awaited<ReturnType<typeof startCanary>>

export async function isCanaryWorking({ port, countConnections }: Canary): Promise<boolean> {
  const countBefore = countConnections()
  for (const host of ['127.0.0.1', '127.1.2.3', '::1']) await once(connect(port, host).resume(), 'close')
  return countConnections() === countBefore + 3
}

const isLocal = (address: string): boolean =>
  (isIPv4(address) && address.startsWith('127.')) ||
  Object.values(networkInterfaces()).some((each) => each?.some((entry) => entry.address === address))

export function watchConnections(allowedAddresses: ReadonlySet<string>): string[] {
  const forbiddenAddresses: string[] = []
  subscribe('net.client.socket', ({ socket }: any) => {
    socket.on('connectionAttempt', (address: string, port: number) => {
      if (!isLocal(address) && !allowedAddresses.has(address)) forbiddenAddresses.push(`${address}:${port}`)
    })
  })
  return forbiddenAddresses
}

export async function startAllowedServers() {
  let reply: ServerReply = { status: 404 }
  const server = await startServer(() => reply)
  const issuer = await startHostileIssuer()
  const port = Number(new URL(server.url).port)
  let visits = 0
  // Count connections: LDAP does not send HTTP requests.
  subscribe('net.server.socket', ({ socket }: any) => {
    if (socket.localPort === port) visits++
  })
  return {
    host: server.host,
    url: server.url,
    issuer,
    countVisits: () => visits,
    respondWith: (next: ServerReply) => {
      reply = next
    },
    close: () => Promise.all([server[Symbol.asyncDispose](), issuer.server[Symbol.asyncDispose]()]),
  }
}

export type AllowedServers = Awaited<ReturnType<typeof startAllowedServers>>
