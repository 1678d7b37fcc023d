import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { afterAll } from 'vitest'
import { freePorts } from '../../support/free-ports.ts'
import { createCertificates, type Certificates } from '../../support/slapd.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** Directories on loopback. Import this file before core: core reads the allowed addresses when it is imported. */

async function startHostile() {
  const connections: Socket[] = []
  const behave: (socket: Socket) => void = () => undefined
  const hostile = { connections, port: 0, behave }
  const server = createServer((socket) => {
    connections.push(socket)
    socket.on('error', () => undefined)
    hostile.behave(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  afterAll(() => {
    server.close()
    for (const socket of connections) socket.destroy()
  })
  hostile.port = (server.address() as AddressInfo).port
  return hostile
}

const [plainPort = 0, securePort = 0, deadPort = 0] = await freePorts(3)
export const ports = { plain: plainPort, secure: securePort, dead: deadPort }
export const hostile = await startHostile()
/** A server to which the platform must never connect. */
export const canary = await startHostile()

const reachable = [plainPort, securePort, deadPort, hostile.port]
process.env['PLAT_OUTBOUND_ALLOW'] = reachable.flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]).join()

/** Creates certificates of an authority other than that of slapd. */
export async function ownCertificates(): Promise<Certificates> {
  await using folder = await temporaryFolder()
  return await createCertificates(folder.path)
}

export function inTls(socket: Socket, { cert, key }: Certificates): TLSSocket {
  const tlsSocket = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext({ cert, key }) })
  tlsSocket.on('error', () => undefined)
  return tlsSocket
}

/** Returns a BER element: tag, length, content. */
export const ber = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content)
  const { length } = body
  const lengthBytes = length < 128 ? [length] : [0x83, length >> 16, (length >> 8) & 255, length & 255]
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), body])
}
const text = (value: string): Buffer => ber(4, Buffer.from(value))

export const message = (id: number, operation: Uint8Array): Buffer => ber(0x30, ber(2, Buffer.from([id])), operation)
/** Returns a result. The tag is 0x61 for a bind, 0x65 for a search, 0x78 for an extended operation such as StartTLS. */
export const result = (tag: number, code: number, ...more: Uint8Array[]): Buffer =>
  ber(tag, ber(10, Buffer.from([code])), text(''), text(''), ...more)
export const entryOf = (dn: string, attributes: Record<string, string>): Buffer => {
  const sets = Object.entries(attributes).map(([name, value]) => ber(0x30, text(name), ber(0x31, text(value))))
  return ber(0x64, text(dn), ber(0x30, ...sets))
}
export const references = (...urls: string[]): Buffer => ber(0x73, ...urls.map(text))

/** Handles requests by message id and operation: 0x60 bind, 0x63 search, 0x77 extended operation. */
export function onRequest(socket: Socket, handle: (id: number, operation: number, bytes: Buffer) => void): void {
  socket.on('data', (bytes) => {
    // The client's requests are short, arrive in one piece, and have ids below 128.
    const offset = bytes[1] === undefined || bytes[1] < 0x80 ? 2 : 2 + (bytes[1] & 0x7f)
    handle(bytes[offset + 2] ?? 0, bytes[offset + 3] ?? 0, bytes)
  })
}
