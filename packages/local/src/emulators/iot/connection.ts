import { randomUUID } from 'node:crypto'
import { generate, type IConnectPacket, type ISubscribePacket, type Packet, parser } from 'mqtt-packet'
import type { RawData, WebSocket } from 'ws'
import type { DisconnectReason } from './events.ts'
import { type Authorization, isAllowed, type Policy } from './policy.ts'

/** Limits of AWS IoT, but lower ones for sizes, because wake-ups have no content. AWS IoT has no `maxEarlyPackets`. */
export const maxPacketBytes = 8192
const maxBufferedBytes = 65_536
const maxEarlyPackets = 8
const maxSubscriptionsPerPacket = 8
const maxSubscriptions = 50
const maxPacketsPerSecond = 100
const defaultKeepAliveSeconds = 1200
const minKeepAliveSeconds = 30

const connackCodes = { accepted: 0, otherVersion: 1, invalidClientId: 2, unavailable: 3, refused: 5 }

export interface Hub {
  authorize: (connection: Connection, request: IConnectPacket) => Promise<Authorization>
  /** Registers an accepted connection, closes an older one with the same client id, and reports the event. */
  onOpen: (connection: Connection) => void
  /** Called once for each open connection that closes with a reason. */
  onClose: (connection: Connection, reason: DisconnectReason) => void
  subscribe: (topic: string, connection: Connection) => void
  unsubscribe: (topic: string, connection: Connection) => void
  publish: (topic: string, payload: Buffer) => void
  handshakeMs: number
  keepAliveUnitMs: number
}

/** The connection of an MQTT 3.1.1 client over a WebSocket. */
export class Connection {
  readonly id: string = randomUUID()
  readonly topics = new Set<string>()
  clientId = ''
  principalId = ''
  versionNumber = 0
  readonly #socket: WebSocket
  readonly #hub: Hub
  readonly #parser = parser({ protocolVersion: 4 })
  #state: 'new' | 'authorizing' | 'open' | 'closed' = 'new'
  #policies: readonly Policy[] = []
  #earlyPackets: Packet[] | undefined = []
  /** Limits the handshake, and then the time between packets of the client. */
  #timer: NodeJS.Timeout
  #expiryTimer: NodeJS.Timeout | undefined
  #currentSecond = 0
  #packetCount = 0

  constructor(socket: WebSocket, hub: Hub) {
    this.#socket = socket
    this.#hub = hub
    this.#timer = setTimeout(() => this.close('CONNECTION_LOST'), hub.handshakeMs)
    this.#parser.on('packet', (packet) => this.#onPacket(packet))
    this.#parser.on('error', () => this.close('CLIENT_ERROR'))
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    socket.on('close', () => this.close('CONNECTION_LOST'))
    socket.on('error', () => this.close('CLIENT_ERROR'))
  }

  send(bytes: Buffer): void {
    // A slow client loses messages and replies. QoS 0 permits the loss of messages.
    if (this.#socket.bufferedAmount < maxBufferedBytes) this.#socket.send(bytes)
  }

  /** Calls `onClose` of the hub only if the connection was open and there is a reason. */
  close(reason?: DisconnectReason): void {
    if (this.#state === 'closed') return
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    clearTimeout(this.#timer)
    clearTimeout(this.#expiryTimer)
    if (wasOpen) for (const topic of this.topics) this.#hub.unsubscribe(topic, this)
    if (wasOpen && reason !== undefined) this.#hub.onClose(this, reason)
    this.#socket.close()
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#state === 'closed') return
    if (!isBinary || !Buffer.isBuffer(data)) return this.close('CLIENT_ERROR')
    // `parse` returns the number of bytes of an incomplete packet.
    if (this.#parser.parse(data) > maxPacketBytes) this.close('CLIENT_ERROR')
  }

  #onPacket(packet: Packet): void {
    if (this.#state === 'closed') return
    if (this.#exceedsRate()) return this.close('THROTTLED')
    if (this.#state === 'open') {
      this.#timer.refresh()
      return this.#onOpenPacket(packet)
    }
    if (this.#state === 'new') return packet.cmd === 'connect' ? void this.#connect(packet) : this.close('CLIENT_ERROR')
    // A client may send packets before the broker has accepted it.
    this.#earlyPackets?.push(packet)
    if ((this.#earlyPackets?.length ?? 0) > maxEarlyPackets) this.close('CLIENT_ERROR')
  }

  #exceedsRate(): boolean {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#currentSecond) this.#packetCount = 0
    this.#currentSecond = second
    return ++this.#packetCount > maxPacketsPerSecond
  }

  async #connect(request: IConnectPacket): Promise<void> {
    this.#state = 'authorizing'
    if (request.protocolVersion !== 4) return this.#refuse('otherVersion')
    if (request.clientId === '') return this.#refuse('invalidClientId')
    this.clientId = request.clientId
    const authorization = await this.#hub.authorize(this, request).catch(() => undefined)
    // The client may have disconnected.
    if (this.#isClosed()) return undefined
    if (authorization === undefined) return this.#refuse('unavailable')
    if (!authorization.isAuthenticated) return this.#refuse('refused')
    this.#policies = authorization.policyDocuments
    const mayConnect = isAllowed(this.#policies, 'Connect', this.clientId)
    const mayLeaveWill = request.will === undefined || isAllowed(this.#policies, 'Publish', request.will.topic)
    if (!mayConnect || !mayLeaveWill) return this.#refuse('refused')
    this.principalId = authorization.principalId
    this.#open(request.keepalive, authorization.disconnectAfterInSeconds)
  }

  #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #refuse(reason: keyof typeof connackCodes): void {
    this.#reply({ cmd: 'connack', sessionPresent: false, returnCode: connackCodes[reason] })
    this.close('CLIENT_ERROR')
  }

  #open(keepAliveSeconds: number | undefined, lifeSeconds: number): void {
    clearTimeout(this.#timer)
    const seconds = Math.min(
      Math.max(keepAliveSeconds || defaultKeepAliveSeconds, minKeepAliveSeconds),
      defaultKeepAliveSeconds,
    )
    this.#timer = setTimeout(() => this.close('MQTT_KEEP_ALIVE_TIMEOUT'), 1.5 * seconds * this.#hub.keepAliveUnitMs)
    this.#expiryTimer = setTimeout(() => this.close('CUSTOMAUTH_TTL_EXPIRATION'), lifeSeconds * 1000)
    this.#state = 'open'
    this.#hub.onOpen(this)
    this.#reply({ cmd: 'connack', sessionPresent: false, returnCode: connackCodes.accepted })
    const earlyPackets = this.#earlyPackets ?? []
    this.#earlyPackets = undefined
    for (const packet of earlyPackets) if (!this.#isClosed()) this.#onOpenPacket(packet)
  }

  #onOpenPacket(packet: Packet): void {
    switch (packet.cmd) {
      case 'pingreq':
        return this.#reply({ cmd: 'pingresp' })
      case 'subscribe':
        return this.#subscribe(packet)
      case 'unsubscribe':
        for (const topic of packet.unsubscriptions) this.#unsubscribe(topic)
        return this.#reply({ cmd: 'unsuback', messageId: packet.messageId ?? 0, granted: [] })
      case 'publish':
        if (packet.qos > 1 || !isAllowed(this.#policies, 'Publish', packet.topic)) return this.close('FORBIDDEN_ACCESS')
        this.#hub.publish(packet.topic, Buffer.from(packet.payload))
        return packet.qos === 1 ? this.#reply({ cmd: 'puback', messageId: packet.messageId ?? 0 }) : undefined
      case 'disconnect':
        return this.close('CLIENT_INITIATED_DISCONNECT')
      default:
        return this.close('CLIENT_ERROR')
    }
  }

  #subscribe({ messageId = 0, subscriptions }: ISubscribePacket): void {
    const isTooMany =
      subscriptions.length > maxSubscriptionsPerPacket || this.topics.size + subscriptions.length > maxSubscriptions
    if (isTooMany) return this.close('CLIENT_ERROR')
    const grantedCodes = subscriptions.map(({ topic }) => {
      const isGranted = isAllowed(this.#policies, 'Subscribe', topic) && isAllowed(this.#policies, 'Receive', topic)
      if (isGranted) {
        this.topics.add(topic)
        this.#hub.subscribe(topic, this)
      }
      return isGranted ? 0 : 128
    })
    this.#reply({ cmd: 'suback', messageId, granted: grantedCodes })
  }

  #unsubscribe(topic: string): void {
    if (this.topics.delete(topic)) this.#hub.unsubscribe(topic, this)
  }

  #reply(packet: Packet): void {
    this.send(generate(packet))
  }
}
