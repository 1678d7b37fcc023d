import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Port 0 selects a free port. Rejects if the address cannot be bound. */
export async function listenAt(server: Server, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port.')
  return address
}
