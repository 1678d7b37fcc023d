import type { Channel } from '@platform/contract/relay'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { backOffMs, randomMs } from './backoff.ts'
import { parseChannel } from './channel-settings.ts'
import { messageOf, info, warn } from './log.ts'
import type { ChannelState } from './mode.ts'
import {
  connectPacket,
  disconnectPacket,
  MqttError,
  type Packet,
  PacketReader,
  pingPacket,
  subscribePacket,
} from './mqtt.ts'
import { agentFor } from './proxy.ts'
import { relayVersion } from './version.ts'

const openLimitMs = 15_000
const responseLimitMs = 10_000
const maxMessageBytes = 4096
// After a channel was open for this time, the delay between attempts starts again at its minimum.
const stableMs = 30_000
// Further attempts are rare, because a proxy or firewall between this relay and the broker probably blocks the channel.
const maxQuickAttempts = 20
const maxRareDelayMs = 300_000

export type ControlChannelOptions = {
  server: string
  passwordFor: (clientId: string) => string
  /** Called for each wake-up message of the broker. */
  onWake: () => void
  /** Called after the channel has opened or closed. */
  onChange: () => void
  /** Called when the channel fails, but not again until it has been open. */
  onProblem: () => void
}

/** Keeps a connection to the broker that the platform names in its responses to heartbeats. */
export class ControlChannel {
  readonly #options: ControlChannelOptions
  #settings: Channel | undefined
  #problem: string | undefined
  #connection: Connection | undefined
  #stopController = new AbortController()
  #runPromise = Promise.resolve()
  #failure: string | undefined

  constructor(options: ControlChannelOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#connection?.isOpen === true
  }

  get state(): ChannelState {
    return { isOpen: this.isOpen, url: this.#settings?.url, problem: this.#failure }
  }

  /** Uses the settings of the newest response; undefined if the platform offers no channel. */
  use(value: unknown): void {
    const settings = value === undefined ? undefined : this.#parse(value)
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return
    this.close()
    this.#settings = settings
    if (settings === undefined) return
    this.#stopController = new AbortController()
    const { signal } = this.#stopController
    this.#runPromise = this.#runPromise.then(() => this.#run(settings, signal))
  }

  close(): void {
    this.#settings = undefined
    this.#stopController.abort()
    this.#connection?.end()
  }

  #parse(value: unknown): Channel | undefined {
    const settings = parseChannel(value, this.#options.server)
    if (typeof settings !== 'string') return settings
    if (settings !== this.#problem) warn(`The control channel of the platform is not used: ${settings}.`)
    this.#problem = settings
    return undefined
  }

  async #run(settings: Channel, signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const openMs = await this.#connect(settings)
      if (openMs >= stableMs) attempt = 0
      const minDelayMs = attempt < maxQuickAttempts ? 0 : randomMs(maxRareDelayMs)
      await sleep(Math.max(backOffMs(attempt), minDelayMs), undefined, { signal }).catch(() => {})
    }
  }

  // Returns the time for which the channel was open, in milliseconds; negative if it was never open.
  async #connect(settings: Channel): Promise<number> {
    const { passwordFor, onWake, onChange } = this.#options
    let openedAtMs = Number.POSITIVE_INFINITY
    try {
      const connection = new Connection(settings, passwordFor(settings.clientId), onWake)
      this.#connection = connection
      await connection.opened
      openedAtMs = performance.now()
      if (this.#failure !== undefined) info('The control channel is open again.')
      this.#failure = undefined
      onChange()
      await connection.closed
    } catch (error) {
      this.#report(error)
    }
    this.#connection = undefined
    const openMs = performance.now() - openedAtMs
    if (openMs >= 0) onChange()
    return openMs
  }

  #report(error: unknown): void {
    const isKnown = this.#failure !== undefined
    if (this.#settings === undefined) return
    this.#failure = messageOf(error)
    if (isKnown) return
    warn(`The control channel is closed: ${this.#failure}. Until it opens, the relay asks for work at intervals.`)
    this.#options.onProblem()
  }
}

/** Returns the reason why a connection to a broker cannot be opened, or undefined if it can. */
export function tryOpen(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = newSocket(url)
    socket.on('error', (error) => resolve(messageOf(error)))
    socket.on('open', () => {
      resolve(undefined)
      socket.terminate()
    })
  })
}

function newSocket(url: string): WebSocket {
  return new WebSocket(url, ['mqtt'], {
    agent: agentFor(new URL(url)),
    headers: { 'user-agent': `platform-relay/${relayVersion}` },
    handshakeTimeout: openLimitMs,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
  })
}

/** One connection to the broker. `opened` resolves once the relay is subscribed; `closed` rejects with the reason. */
export class Connection {
  readonly opened: Promise<void>
  readonly closed: Promise<never>
  isOpen = false
  readonly #settings: Channel
  readonly #onWake: () => void
  readonly #socket: WebSocket
  readonly #reader = new PacketReader()
  readonly #timers: NodeJS.Timeout[] = []
  #responseTimer: NodeJS.Timeout | undefined
  #hasEnded = false
  #open = () => {}
  #fail: (reason: Error) => void = () => {}

  constructor(settings: Channel, password: string, onWake: () => void) {
    this.#settings = settings
    this.#onWake = onWake
    const opened = new Promise<void>((resolve) => (this.#open = resolve))
    this.closed = new Promise<never>((_, reject) => (this.#fail = reject))
    this.closed.catch(() => {})
    this.opened = Promise.race([opened, this.closed])
    this.#socket = this.#openSocket(password)
    this.#timers.push(setTimeout(() => this.#end('the broker did not answer in time'), openLimitMs))
  }

  end(): void {
    if (this.isOpen) this.#send(disconnectPacket)
    this.#end('the relay closes it')
  }

  #openSocket(password: string): WebSocket {
    const socket = newSocket(this.#settings.url)
    socket.on('open', () => this.#send(connectPacket({ ...this.#settings, password })))
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    socket.on('error', (error) => this.#end(messageOf(error)))
    socket.on('close', (code) => this.#end(`the broker closed it (${code})`))
    return socket
  }

  #receive(data: unknown, isBinary: boolean): void {
    try {
      if (!isBinary || !Buffer.isBuffer(data)) throw new MqttError('a message is not binary')
      for (const packet of this.#reader.read(data)) this.#handle(packet)
    } catch (error) {
      this.#end(`the broker is not understood: ${messageOf(error)}`)
    }
  }

  #handle(packet: Packet): void {
    if (packet.type === 'connack') {
      if (packet.code === 0) this.#send(subscribePacket(this.#settings.topic))
      else this.#end(`the broker rejected the relay (code ${packet.code})`)
    } else if (packet.type === 'suback') {
      if (packet.code === 0) this.#onSubscribed()
      else this.#end('the broker rejected the subscription')
    } else if (packet.type === 'pingresp') {
      clearTimeout(this.#responseTimer)
      this.#responseTimer = undefined
    } else if (packet.topic === this.#settings.topic && this.isOpen) {
      this.#onWake()
    }
  }

  #onSubscribed(): void {
    if (this.isOpen) return
    this.isOpen = true
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.push(setInterval(() => this.#ping(), this.#settings.keepAliveSeconds * 1000))
    this.#open()
  }

  #ping(): void {
    this.#responseTimer ??= setTimeout(() => this.#end('the broker does not respond'), responseLimitMs)
    this.#send(pingPacket)
  }

  #send(packet: Buffer): void {
    // `send` throws while the connection is being opened. The socket reports later failures as events.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(packet, () => {})
  }

  #end(reason: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.isOpen = false
    clearTimeout(this.#responseTimer)
    for (const timer of this.#timers) clearTimeout(timer)
    this.#fail(new Error(reason))
    // `close` first sends the packets that are queued.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close()
    const timer = setTimeout(() => this.#socket.terminate(), 1000)
    timer.unref()
  }
}
