import type { Server } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'

type Session = { socket: WebSocket; topic: string }

/** A broker on the path `/channel` of a server. Each connection has one topic. */
export class FakeBroker {
  /** The client identifiers of all connection attempts, including rejected ones. */
  readonly connections: string[] = []
  isReachable = true
  readonly #sessions = new Set<Session>()
  readonly #server = new WebSocketServer({ noServer: true })

  constructor(server: Server, isValid: (clientId: string, password: string) => boolean) {
    server.on('upgrade', (request, socket, head) => {
      if (!this.isReachable || request.url !== '/channel') return socket.destroy()
      this.#server.handleUpgrade(request, socket, head, (client) => this.#serve(client, isValid))
    })
  }

  get openCount(): number {
    return this.#sessions.size
  }

  wake(): void {
    for (const { socket, topic } of this.#sessions) socket.send(publish(topic))
  }

  /** Sends bytes unchanged to all subscribed connections. */
  send(bytes: Buffer | string): void {
    for (const { socket } of this.#sessions) socket.send(bytes)
  }

  /** Ends all subscribed connections without a close message. */
  reset(): void {
    for (const { socket } of this.#sessions) socket.terminate()
  }

  #serve(socket: WebSocket, isValid: (clientId: string, password: string) => boolean): void {
    const session = { socket, topic: '' }
    socket.on('close', () => this.#sessions.delete(session))
    socket.on('message', (data: Buffer) => {
      const type = data[0]! >> 4
      if (type === 1) {
        const [clientId = '', , password = ''] = textsOf(data, lengthBytes(data) + 11)
        this.connections.push(clientId)
        socket.send(Buffer.from([0x20, 2, 0, isValid(clientId, password) ? 0 : 5]))
      } else if (type === 8) {
        session.topic = textsOf(data, lengthBytes(data) + 3)[0] ?? ''
        this.#sessions.add(session)
        socket.send(Buffer.from([0x90, 3, data[lengthBytes(data) + 1]!, data[lengthBytes(data) + 2]!, 0]))
      } else if (type === 12) socket.send(Buffer.from([0xd0, 0]))
    })
  }
}

export function publish(topic: string): Buffer {
  const name = Buffer.from(topic)
  return Buffer.concat([Buffer.from([0x30, name.length + 2, 0, name.length]), name])
}

const lengthBytes = (packet: Buffer): number => (packet[1]! < 0x80 ? 1 : 2)

function textsOf(packet: Buffer, start: number): string[] {
  const texts: string[] = []
  for (let offset = start; offset + 2 <= packet.length;) {
    const end = offset + 2 + packet.readUInt16BE(offset)
    texts.push(packet.toString('utf8', offset + 2, end))
    offset = end
  }
  return texts
}
