import { IoTDataPlaneClient, PublishCommand } from '@aws-sdk/client-iot-data-plane'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { type Broker, type BrokerOptions, startBroker } from '@platform/local/emulators/iot/broker'
import { serveDataPlane } from '@platform/local/emulators/iot/data-plane'
import type { PresenceEvent } from '@platform/local/emulators/iot/events'
import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { listen } from '../../../support/http-server.ts'
import { allow, type MqttClient, openMqtt } from '../../../support/mqtt-client.ts'

/** Allows every client its own id, and the topic of the same name. */
const authorize: BrokerOptions['authorize'] = async ({ protocolData: { mqtt } }) => allow(mqtt.clientId, mqtt.clientId)

async function serve(options: Partial<BrokerOptions> = {}) {
  const events: PresenceEvent[] = []
  const broker: Broker = startBroker({
    authorize,
    onPresence: (event) => events.push(event),
    log: () => {},
    ...options,
  })
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    if (!broker.accept(request, socket, head, '192.0.2.1')) socket.destroy()
  })
  const listener = await listen(server)
  return {
    broker,
    events,
    url: listener.url.replace('http', 'ws'),
    [Symbol.asyncDispose]: async () => {
      broker.close()
      server.closeAllConnections()
      await listener[Symbol.asyncDispose]()
    },
  }
}

test('a message reaches the subscribers of its topic, and presence events describe each connection', async () => {
  await using server = await serve()
  using client = await openMqtt(server.url)
  using otherClient = await openMqtt(server.url)
  expect(await Promise.all([client.connect('one'), otherClient.connect('other')])).toEqual([0, 0])
  expect(await Promise.all([client.subscribe('one'), otherClient.subscribe('other')])).toEqual([[0], [0]])
  const dataPlane = await serveDataPlane(server.broker, 'key')
  for (const [key, topic] of [
    ['another', 'other'],
    ['key', 'one'],
  ] as const) {
    const client = new IoTDataPlaneClient({ ...clientSettings(dataPlane.url, key), maxAttempts: 1 })
    const sent = client.send(new PublishCommand({ topic, payload: Buffer.from(topic) }))
    await (key === 'key' ? sent : expect(sent).rejects.toMatchObject({ name: 'UnrecognizedClientException' }))
    client.destroy()
  }
  await dataPlane.close()
  expect(await client.next()).toMatchObject({ cmd: 'publish', topic: 'one', payload: Buffer.from('one') })
  otherClient.send({ cmd: 'pingreq' })
  expect(await otherClient.next()).toMatchObject({ cmd: 'pingresp' })
  client.send({ cmd: 'disconnect' })
  await client.closed
  const ofOne = server.events.filter(({ clientId }) => clientId === 'one')
  const session = ofOne[0]?.sessionIdentifier
  expect(ofOne).toMatchObject([
    { eventType: 'connected', sessionIdentifier: session, principalIdentifier: 'relay1' },
    { eventType: 'disconnected', sessionIdentifier: session, disconnectReason: 'CLIENT_INITIATED_DISCONNECT' },
  ])
})

test.each<[string, BrokerOptions['authorize'], 4 | 5, number]>([
  ['the authorizer denies', async () => ({ isAuthenticated: false }), 4, 5],
  ['the policy names another client', async () => allow('other', 'one'), 4, 5],
  ['the authorizer fails', () => Promise.reject(new Error('failed')), 4, 3],
  [
    'the response of the authorizer is not valid',
    async () => ({ ...allow('one', 'one'), policyDocuments: ['{'] }),
    4,
    3,
  ],
  ['the client speaks another version', authorize, 5, 1],
])('a connection is refused if %s', async (_, authorizer, protocolVersion, code) => {
  await using server = await serve({ authorize: authorizer })
  using client = await openMqtt(server.url)
  expect(await client.connect('one', '', { protocolVersion })).toBe(code)
  await client.closed
  expect(server.events).toEqual([])
})

const publishPacket = { cmd: 'publish', topic: 'one', payload: 'x', qos: 0, dup: false, retain: false } as const

test.each<[string, string, (client: MqttClient) => void]>([
  ['publishes', 'FORBIDDEN_ACCESS', ({ send }) => send(publishPacket)],
  ['sends text', 'CLIENT_ERROR', ({ socket }) => socket.send('text')],
  ['sends garbage', 'CLIENT_ERROR', ({ socket }) => socket.send(Buffer.alloc(100, 0xff))],
  ['connects again', 'CLIENT_ERROR', (client) => void client.connect('one')],
  ['sends a large message', 'CLIENT_ERROR', ({ socket }) => socket.send(Buffer.alloc(8193))],
  [
    'sends a large packet in parts',
    'CLIENT_ERROR',
    ({ socket }) =>
      [Buffer.from([0x30, 0xff, 0xff, 0x03]), Buffer.alloc(8000), Buffer.alloc(8000)].forEach((part) =>
        socket.send(part),
      ),
  ],
  ['sends too many packets', 'THROTTLED', ({ send }) => Array.from({ length: 300 }, () => send({ cmd: 'pingreq' }))],
])('a client that %s is disconnected', async (_, disconnectReason, misuse) => {
  await using server = await serve()
  using client = await openMqtt(server.url)
  await client.connect('one')
  misuse(client)
  await client.closed
  expect(server.events.at(-1)).toMatchObject({ eventType: 'disconnected', disconnectReason })
  expect(server.broker.count()).toBe(0)
})

test.each(['two', '#', '+', 'one/#'])('a client may not subscribe to %j', async (topic) => {
  await using server = await serve()
  using client = await openMqtt(server.url)
  await client.connect('one')
  expect(await client.subscribe(topic)).toEqual([128])
})

test('a silent client is disconnected after 1.5 times its keep-alive time', async () => {
  await using server = await serve({ limits: { keepAliveUnitMs: 1 } })
  using client = await openMqtt(server.url)
  await client.connect('one', '', { keepalive: 30 })
  await client.closed
  const [connected, disconnected] = server.events
  expect(disconnected).toMatchObject({ disconnectReason: 'MQTT_KEEP_ALIVE_TIMEOUT' })
  expect((disconnected?.timestamp ?? 0) - (connected?.timestamp ?? 0)).toBeGreaterThanOrEqual(44)
})

test('a second connection with the same client id closes the first one', async () => {
  await using server = await serve()
  using first = await openMqtt(server.url)
  using secondConnection = await openMqtt(server.url)
  expect([await first.connect('one'), await secondConnection.connect('one')]).toEqual([0, 0])
  await first.closed
  const [start, end, next] = server.events
  expect([end?.sessionIdentifier, end?.disconnectReason]).toEqual([start?.sessionIdentifier, 'DUPLICATE_CLIENTID'])
  expect(next).toMatchObject({ eventType: 'connected', clientId: 'one' })
  expect(next?.versionNumber).toBeGreaterThan(end?.versionNumber ?? 0)
  expect(server.broker.count()).toBe(1)
})

test('unauthenticated connections are limited by network, and closed after a time', async () => {
  await using server = await serve({ limits: { maxUnauthenticatedPerNetwork: 2, handshakeMs: 50 } })
  const [first, second] = [await openMqtt(server.url), await openMqtt(server.url)]
  await expect(openMqtt(server.url)).rejects.toThrow('socket hang up')
  await Promise.all([first.closed, second.closed])
  using client = await openMqtt(server.url)
  expect(await client.connect('one')).toBe(0)
  // An authenticated connection does not count towards the limit.
  using another = await openMqtt(server.url)
  expect(await another.connect('two')).toBe(0)
  await expect(openMqtt(server.url, [])).rejects.toThrow()
})

test('closing the broker disconnects all clients without events', async () => {
  await using server = await serve()
  using client = await openMqtt(server.url)
  await client.connect('one')
  server.broker.close()
  await client.closed
  expect(server.events.map(({ eventType }) => eventType)).toEqual(['connected'])
})
