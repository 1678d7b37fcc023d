import { once } from 'node:events'
import { generate, type Packet, parser } from 'mqtt-packet'
import { type ClientOptions, WebSocket } from 'ws'

export type MqttClient = Awaited<ReturnType<typeof openMqtt>>

/** Opens a client that exposes each packet of the broker and can send invalid packets. */
export async function openMqtt(url: string, protocols: string | string[] = 'mqtt', options: ClientOptions = {}) {
  const socket = new WebSocket(url, protocols, options)
  const received: Packet[] = []
  const waiting: ((packet: Packet | undefined) => void)[] = []
  const packets = parser({ protocolVersion: 4 })
  packets.on('packet', (packet) => {
    const next = waiting.shift()
    if (next === undefined) received.push(packet)
    else next(packet)
  })
  socket.on('message', (data) => Buffer.isBuffer(data) && packets.parse(data))
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  void closed.then(() => waiting.splice(0).forEach((resolve) => resolve(undefined)))
  const send = (packet: Packet) => socket.send(generate(packet))
  /** Returns the next packet, or undefined if the broker closes the connection first. */
  const next = async (): Promise<Packet | undefined> => {
    const packet = received.shift()
    if (packet !== undefined || socket.readyState > WebSocket.OPEN) return packet
    return new Promise((resolve) => waiting.push(resolve))
  }
  await once(socket, 'open')
  return {
    socket,
    send,
    next,
    closed,
    /** Returns the return code of the CONNACK packet. */
    connect: async (clientId: string, password = '', options: { keepalive?: number; protocolVersion?: 4 | 5 } = {}) => {
      const credentials = { username: '', password: Buffer.from(password) }
      send({
        cmd: 'connect',
        protocolId: 'MQTT',
        protocolVersion: 4,
        clean: true,
        clientId,
        ...credentials,
        ...options,
      })
      const packet = await next()
      return packet?.cmd === 'connack' ? packet.returnCode : undefined
    },
    /** Returns the granted quality of service; 128 means rejected. */
    subscribe: async (topic: string) => {
      send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 0 }] })
      const packet = await next()
      return packet?.cmd === 'suback' ? packet.granted : undefined
    },
    [Symbol.dispose]: () => socket.terminate(),
  }
}

const arn = (name: string) => `arn:aws:iot:us-east-1:000000000000:${name}`

/** Returns the response of an authorizer that allows a client to use its id and one topic. */
export const allow = (clientId: string, topic: string) => ({
  isAuthenticated: true,
  principalId: 'relay1',
  disconnectAfterInSeconds: 300,
  refreshAfterInSeconds: 300,
  policyDocuments: [
    JSON.stringify({
      Version: '2012-10-17',
      Statement: [
        { Effect: 'Allow', Action: 'iot:Connect', Resource: arn(`client/${clientId}`) },
        { Effect: 'Allow', Action: 'iot:Subscribe', Resource: arn(`topicfilter/${topic}`) },
        { Effect: 'Allow', Action: 'iot:Receive', Resource: arn(`topic/${topic}`) },
      ],
    }),
  ],
})
