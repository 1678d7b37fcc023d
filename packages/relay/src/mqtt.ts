// The packets of MQTT 3.1.1 that a subscriber with QoS 0 needs.

const maxPacketBytes = 2048

const packetTypes = {
  connect: 1,
  connack: 2,
  publish: 3,
  subscribe: 8,
  suback: 9,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
}

/** Thrown for a message of the broker that the relay does not accept. */
export class MqttError extends Error {}

export type Connect = { clientId: string; username: string; password: string; keepAliveSeconds: number }

/** A packet from the broker. `code` is 0 if the broker has accepted the connection or the subscription. */
export type Packet =
  | { type: 'connack'; code: number }
  | { type: 'suback'; code: number }
  | { type: 'publish'; topic: string }
  | { type: 'pingresp' }

/** Creates the packet that starts a clean session. */
export function connectPacket({ clientId, username, password, keepAliveSeconds }: Connect): Buffer {
  const flags = 0b1100_0010
  return encodePacket(packetTypes.connect, 0, [
    encodeText('MQTT'),
    Buffer.from([4, flags, keepAliveSeconds >> 8, keepAliveSeconds & 0xff]),
    ...[clientId, username, password].map(encodeText),
  ])
}

export function subscribePacket(topic: string): Buffer {
  return encodePacket(packetTypes.subscribe, 0b0010, [Buffer.from([0, 1]), encodeText(topic), Buffer.from([0])])
}

export const pingPacket = encodePacket(packetTypes.pingreq, 0, [])
export const disconnectPacket = encodePacket(packetTypes.disconnect, 0, [])

function encodePacket(type: number, flags: number, parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const lengthBytes: number[] = []
  for (let rest = body.length; lengthBytes.length === 0 || rest > 0; rest >>= 7)
    lengthBytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
  return Buffer.concat([Buffer.from([(type << 4) | flags, ...lengthBytes]), body])
}

function encodeText(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes])
}

/** Splits received bytes into packets. A packet may arrive in parts. */
export class PacketReader {
  #bytes: Buffer = Buffer.alloc(0)

  /** Returns the complete packets. Throws `MqttError` if the bytes are not a packet that the relay expects. */
  read(bytes: Buffer): Packet[] {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    const packets: Packet[] = []
    for (let packet = this.#next(); packet; packet = this.#next()) packets.push(packet)
    return packets
  }

  #next(): Packet | undefined {
    const { length, start } = lengthOf(this.#bytes)
    if (length > maxPacketBytes) throw new MqttError('a packet is too long')
    if (start === 0 || this.#bytes.length < start + length) return undefined
    const packet = parse(this.#bytes[0]!, this.#bytes.subarray(start, start + length))
    this.#bytes = this.#bytes.subarray(start + length)
    return packet
  }
}

// `start` is 0 until the length has arrived completely.
function lengthOf(bytes: Buffer): { length: number; start: number } {
  let length = 0
  for (let index = 1; index < Math.min(bytes.length, 5); index++) {
    length += (bytes[index]! & 0x7f) << (7 * (index - 1))
    if (bytes[index]! < 0x80) return { length, start: index + 1 }
  }
  if (bytes.length >= 5) throw new MqttError('the length of a packet is invalid')
  return { length: 0, start: 0 }
}

function parse(header: number, body: Buffer): Packet {
  const type = header >> 4
  if (type === packetTypes.connack && body.length === 2) return { type: 'connack', code: body[1]! }
  if (type === packetTypes.suback && body.length === 3) return { type: 'suback', code: body[2]! }
  if (type === packetTypes.pingresp && body.length === 0) return { type: 'pingresp' }
  const isQos0 = (header & 0b0110) === 0
  if (type === packetTypes.publish && isQos0 && body.length >= 2 && body.length >= 2 + body.readUInt16BE(0)) {
    return { type: 'publish', topic: body.toString('utf8', 2, 2 + body.readUInt16BE(0)) }
  }
  throw new MqttError(`a packet of type ${type} is unexpected or malformed`)
}
