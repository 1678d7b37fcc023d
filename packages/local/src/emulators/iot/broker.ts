import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { ipNetworkOf } from '@platform/core/lib/ip-network'
import { generate } from 'mqtt-packet'
import { WebSocketServer } from 'ws'
import type { Log } from '../../log.ts'
import { Connection, type Hub, maxPacketBytes } from './connection.ts'
import { type AuthorizerEvent, authorizerEvent, type DisconnectReason, type PresenceEvent } from './events.ts'
import { Authorization } from './policy.ts'

/**
 * A broker for MQTT over WebSockets that behaves like AWS IoT Core with a custom authorizer. It stores no sessions and
 * no messages.
 */
export interface Broker {
  /** Takes over the socket of an HTTP request. Returns false, and leaves the socket, at the limit of connections. */
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer, address: string) => boolean
  /** Sends a message to the current subscribers of the topic. */
  publish: (topic: string, payload: Buffer) => void
  /** Returns the number of authenticated connections. */
  count: () => number
  /** Closes all authenticated connections, without events. */
  close: () => void
}

export interface BrokerOptions {
  authorize: (event: AuthorizerEvent) => Promise<unknown>
  onPresence: (event: PresenceEvent) => void
  log: Log
  limits?: Partial<typeof defaultLimits>
}

const defaultLimits = {
  handshakeMs: 10_000,
  maxConnections: 20_000,
  maxUnauthenticated: 1000,
  maxUnauthenticatedPerNetwork: 200,
  /** Length of a second of the keep-alive time. Tests shorten it. */
  keepAliveUnitMs: 1000,
}

export function startBroker({ authorize, onPresence, log, limits: limitOverrides }: BrokerOptions): Broker {
  const limits = { ...defaultLimits, ...limitOverrides }
  const connections = new Map<string, Connection>()
  const subscribers = new Map<string, Set<Connection>>()
  const handshakes = new Handshakes(limits)
  let lastVersion = 0
  const server = new WebSocketServer(webSocketOptions)

  const report = (connection: Connection, reason?: DisconnectReason) =>
    onPresence({
      clientId: connection.clientId,
      timestamp: Date.now(),
      eventType: reason === undefined ? 'connected' : 'disconnected',
      sessionIdentifier: connection.id,
      principalIdentifier: connection.principalId,
      versionNumber: connection.versionNumber,
      ...(reason !== undefined && {
        clientInitiatedDisconnect: reason === 'CLIENT_INITIATED_DISCONNECT',
        disconnectReason: reason,
      }),
    })

  const publish = (topic: string, payload: Buffer) => {
    const bytes = generate({ cmd: 'publish', topic, payload, qos: 0, dup: false, retain: false })
    for (const subscriber of subscribers.get(topic) ?? []) subscriber.send(bytes)
  }

  const hub: Hub = {
    ...limits,
    publish,
    authorize: async ({ id }, { clientId, username = '', password = Buffer.alloc(0) }) => {
      try {
        return Authorization.parse(await authorize(authorizerEvent({ id, clientId, username, password })))
      } catch (error) {
        log('the authorizer of the control channel failed', { error })
        throw error
      }
    },
    onOpen: (connection) => {
      connections.get(connection.clientId)?.close('DUPLICATE_CLIENTID')
      connections.set(connection.clientId, connection)
      connection.versionNumber = ++lastVersion
      handshakes.end(connection)
      report(connection)
    },
    onClose: (connection, reason) => {
      if (connections.get(connection.clientId) === connection) connections.delete(connection.clientId)
      report(connection, reason)
    },
    subscribe: (topic, connection) => {
      subscribers.set(topic, (subscribers.get(topic) ?? new Set()).add(connection))
    },
    unsubscribe: (topic, connection) => {
      subscribers.get(topic)?.delete(connection)
      if (subscribers.get(topic)?.size === 0) subscribers.delete(topic)
    },
  }

  return {
    publish,
    count: () => connections.size,
    accept: (request, socket, head, address) => {
      const network = ipNetworkOf(address)
      if (connections.size >= limits.maxConnections || !handshakes.hasRoom(network)) return false
      const end = handshakes.begin(network)
      socket.once('close', end)
      if (!offersMqtt(request)) {
        socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
        return true
      }
      server.handleUpgrade(request, socket, head, (webSocket) => handshakes.onEnd(new Connection(webSocket, hub), end))
      return true
    },
    close: () => {
      for (const connection of connections.values()) connection.close()
      connections.clear()
    },
  }
}

const protocol = 'mqtt'

// The types of `ws` lack some of these options.
const webSocketOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: maxPacketBytes,
  maxFragments: 64,
  maxBufferedChunks: 64,
  closeTimeout: 1000,
  handleProtocols: () => protocol,
}

const offersMqtt = ({ headers }: IncomingMessage): boolean =>
  (headers['sec-websocket-protocol'] ?? '').split(',').some((name) => name.trim() === protocol)

/** Counts unauthenticated connections, to limit their number in total and for each network. */
class Handshakes {
  readonly #limits: Pick<typeof defaultLimits, 'maxUnauthenticated' | 'maxUnauthenticatedPerNetwork'>
  readonly #countByNetwork = new Map<string, number>()
  readonly #endByConnection = new WeakMap<Connection, () => void>()
  #count = 0

  constructor(limits: Pick<typeof defaultLimits, 'maxUnauthenticated' | 'maxUnauthenticatedPerNetwork'>) {
    this.#limits = limits
  }

  hasRoom(network: string): boolean {
    const { maxUnauthenticated, maxUnauthenticatedPerNetwork } = this.#limits
    return this.#count < maxUnauthenticated && (this.#countByNetwork.get(network) ?? 0) < maxUnauthenticatedPerNetwork
  }

  /** Counts a connection. Returns a function that ends the count, and that may be called more than once. */
  begin(network: string): () => void {
    this.#count++
    this.#countByNetwork.set(network, (this.#countByNetwork.get(network) ?? 0) + 1)
    let isPending = true
    return () => {
      if (!isPending) return
      isPending = false
      this.#count--
      const remainingCount = (this.#countByNetwork.get(network) ?? 1) - 1
      if (remainingCount === 0) this.#countByNetwork.delete(network)
      else this.#countByNetwork.set(network, remainingCount)
    }
  }

  onEnd(connection: Connection, end: () => void): void {
    this.#endByConnection.set(connection, end)
  }

  end(connection: Connection): void {
    this.#endByConnection.get(connection)?.()
  }
}
