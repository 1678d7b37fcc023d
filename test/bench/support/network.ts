import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** The stand-ins as they are reached over a network: every packet arrives a while after it was sent. */
export interface Network extends AsyncDisposable {
  /** That of the stand-ins, with other addresses. */
  environment: Record<string, string>
}

/** Puts a network between functions and stand-ins. `roundTripMs` passes before the first byte of an answer is there. */
export async function startNetwork(environment: Record<string, string>, roundTripMs: number): Promise<Network> {
  const addresses = Object.entries(environment).filter(([name]) => name.startsWith('AWS_ENDPOINT_URL_'))
  const ways = await Promise.all(addresses.map(([, address]) => openWay(address, roundTripMs / 2)))
  // URLs of queues begin with the address of their service.
  const rerouted = (value: string) => ways.reduce((text, { from, to }) => text.replace(from, to), value)
  return {
    environment: Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, rerouted(value)])),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(ways.map(({ close }) => close()))
    },
  }
}

async function openWay(address: string, delayMs: number) {
  const { hostname, port } = new URL(address)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket.setNoDelay(true))
      // Timers of one length fire in the order in which they were set.
      socket.on('data', (bytes) => setTimeout(() => other.write(bytes), delayMs))
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroySoon()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    from: new URL(address).origin,
    to: `http://127.0.0.1:${portOf(server)}`,
    close: () => close(server, sockets),
  }
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function close(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  for (const socket of sockets) socket.destroy()
  await closed
}
