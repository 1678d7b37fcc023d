import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { afterAll } from 'vitest'
import { freePorts } from '../../support/free-ports.ts'
import { certificates, type Certificates } from '../../support/slapd.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/**
 * Ports for directories, honest and hostile, on loopback. Which of them the platform may reach is a setting, read when core
 * is first imported: import this file before it.
 */

const listening = async (server: Server): Promise<number> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

/** A server that does what a test says with each connection; ends what is left of them when the test file ends. */
class Hostile {
  readonly connections: Socket[] = []
  behave: (socket: Socket) => void = () => undefined
  readonly #server = createServer((socket) => {
    this.connections.push(socket)
    socket.on('error', () => undefined)
    this.behave(socket)
  })

  port = 0

  async listen(): Promise<this> {
    this.port = await listening(this.#server)
    return this
  }

  close(): void {
    this.#server.close()
    for (const socket of this.connections) socket.destroy()
  }
}

const [plain = 0, secure = 0, dead = 0] = await freePorts(3)
export const ports = { plain, secure, dead }
export const hostile = await new Hostile().listen()
/** What nobody may ever be sent to: it is not among what the platform may reach. */
export const canary = await new Hostile().listen()
afterAll(() => {
  hostile.close()
  canary.close()
})

const reachable = [plain, secure, dead, hostile.port]
process.env['PLAT_OUTBOUND_ALLOW'] = reachable.flatMap((port) => [`localhost:${port}`, `127.0.0.1:${port}`]).join()

/** Certificates of another authority than slapd's. */
export async function ownCertificates(): Promise<Certificates> {
  await using folder = await temporaryFolder()
  return await certificates(folder.path)
}

/** Takes a connection on in TLS, as a server. */
export function inTls(socket: Socket, { cert, key }: Certificates): TLSSocket {
  const secured = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext({ cert, key }) })
  secured.on('error', () => undefined)
  return secured
}

/** An element of BER: tag, length, content. */
export const ber = (tag: number, ...content: Uint8Array[]): Buffer => {
  const body = Buffer.concat(content)
  const length =
    body.length < 128 ? [body.length] : [0x83, body.length >> 16, (body.length >> 8) & 255, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
const text = (value: string): Buffer => ber(4, Buffer.from(value))

/** A message with the id of the request that it answers. */
export const message = (id: number, operation: Uint8Array): Buffer => ber(0x30, ber(2, Buffer.from([id])), operation)
/** A result: 0x61 of a bind, 0x65 of a search, 0x78 of an extended operation such as StartTLS. */
export const result = (tag: number, code: number, ...more: Uint8Array[]): Buffer =>
  ber(tag, ber(10, Buffer.from([code])), text(''), text(''), ...more)
export const entryOf = (dn: string, attributes: Record<string, string>): Buffer =>
  ber(
    0x64,
    text(dn),
    ber(0x30, ...Object.entries(attributes).map(([name, value]) => ber(0x30, text(name), ber(0x31, text(value))))),
  )
export const references = (...urls: string[]): Buffer => ber(0x73, ...urls.map(text))

/** The requests that arrive, each with its id and what it asks for: 0x60 a bind, 0x63 a search, 0x77 an extended operation. */
export function onRequest(socket: Socket, answer: (id: number, operation: number, bytes: Buffer) => void): void {
  socket.on('data', (bytes) => {
    // Requests of the client are short, come whole, and number their messages from 2.
    const at = bytes[1] === undefined || bytes[1] < 0x80 ? 2 : 2 + (bytes[1] & 0x7f)
    answer(bytes[at + 2] ?? 0, bytes[at + 3] ?? 0, bytes)
  })
}
