import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HeartbeatLoop } from './heartbeat.ts'
import { Client } from './client.ts'
import type { ServerClock } from './clock.ts'
import { WorkerPool } from './worker-pool.ts'
import { FatalError } from './exit-codes.ts'
import { removeFolder } from './files.ts'
import { type Identity, keyFor, statementKeysOf } from './identity.ts'
import { Journal } from './journal.ts'
import { messageOf, warn } from './log.ts'
import { connectNodes } from './node.ts'
import { NodeWatch } from './node-watch.ts'
import { Spool } from './spool.ts'

/**
 * Limit for the first check of all nodes, too short for a cluster to become Degraded. The rest are reported as Offline.
 */
const firstLookMs = 20_000
const reportMs = 6000
const goodbyeMs = 2000

export type RelaySettings = { stateFolder: string; slots: number; clock: ServerClock }

/** A running, enrolled relay. */
export class Relay {
  readonly #workFolder: string
  readonly #client: Client
  readonly #journal: Journal
  readonly #watch: NodeWatch
  readonly #crew: WorkerPool
  readonly #beat: HeartbeatLoop
  readonly #reporting = new AbortController()
  #isRevoked = false

  constructor(identity: Identity, { stateFolder, slots, clock }: RelaySettings) {
    const { server, relayId, clusterId, heartbeatIntervalSeconds: intervalSeconds } = identity
    const privateKey = keyFor(stateFolder, identity.tokenId)
    this.#workFolder = join(stateFolder, 'work')
    this.#client = new Client({ server, relayId, privateKey }, clock, () => this.#revoke())
    this.#journal = new Journal(join(stateFolder, 'journal.jsonl'))
    const nodes = connectNodes(identity.nodes, this.#workFolder)
    const resources = {
      client: this.#client,
      clock,
      journal: this.#journal,
      spool: new Spool(stateFolder),
      clusterId,
      statementKeys: statementKeysOf(identity),
      nodes,
      signal: this.#reporting.signal,
    }
    this.#watch = new NodeWatch(nodes)
    this.#crew = new WorkerPool({ resources, slots, onSlotFreed: () => this.#beat.nudge() })
    this.#beat = new HeartbeatLoop({ client: this.#client, crew: this.#crew, watch: this.#watch, intervalSeconds })
  }

  /** Runs until the signal aborts. Throws `FatalError` if the server has revoked the relay. */
  async run(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => this.#beat.stop())
    this.#recover()
    // The check ends with the process: an unresponsive node must not delay the exit.
    const look = this.#watch.check()
    void look.then(() => this.#watch.run(this.#reporting.signal))
    await Promise.race([look, sleep(firstLookMs, undefined, { ref: false }), once(signal, 'abort')])
    await this.#beat.run()
    await (this.#isRevoked ? this.#abandon() : this.#leave(String(signal.reason)))
    this.#journal.close()
    if (this.#isRevoked) {
      throw new FatalError('revoked', 'The server no longer accepts this relay. Issue a new token to enroll it again.')
    }
  }

  #recover(): void {
    for (const entry of this.#journal.unfinished()) this.#crew.resume(entry)
    removeFolder(this.#workFolder)
    mkdirSync(this.#workFolder, { recursive: true, mode: 0o700 })
  }

  #revoke(): void {
    this.#isRevoked = true
    this.#beat.stop()
  }

  async #abandon(): Promise<void> {
    this.#reporting.abort()
    await this.#crew.close()
  }

  async #leave(reason: string): Promise<void> {
    const timer = setTimeout(() => this.#reporting.abort(), reportMs)
    await this.#crew.close()
    clearTimeout(timer)
    this.#reporting.abort()
    try {
      const body = { reason }
      await this.#client.attempt({ path: '/goodbye', body, timeoutMs: goodbyeMs, signal: new AbortController().signal })
    } catch (error) {
      warn(`The server was not notified that this relay stops: ${messageOf(error)}`)
    }
  }
}
