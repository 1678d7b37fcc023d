import type { Heartbeat } from '@platform/contract/relay'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { jitterMs, randomMs, retryDelayMs } from './backoff.ts'
import type { ControlChannel } from './channel.ts'
import type { Client } from './client.ts'
import { type Claimed, claimsIn, type WorkerPool } from './worker-pool.ts'
import type { Facts } from './facts.ts'
import { type RelayResponse, codeOf, RetryableError } from './http.ts'
import type { JobDeps } from './job-deps.ts'
import { stringsIn } from './json.ts'
import type { StatementKeys } from './statement-keys.ts'
import type { NodeWatch } from './node-watch.ts'
import type { Updater } from './update/updater.ts'

const requestLimitMs = 15_000
// Claims need time to complete; an earlier heartbeat would return the same jobs again.
const claimDelayMs = 200
const wakeDelayMs = 20
const soonMs = 200
// Without a channel, more work is likely after work.
const activeMs = 60_000
const activeIntervalMs = 2000
// Relays that lose their channels at the same time do not all respond in the same moment.
const maxLossDelayMs = 2000

export type HeartbeatDeps = Pick<JobDeps, 'journal' | 'server'> & {
  client: Client
  channel: ControlChannel
  workers: WorkerPool
  watch: NodeWatch
  statementKeys: StatementKeys
  intervalSeconds: number
  scriptsIsolated: boolean
  facts: Facts
  updater: Updater
}

/**
 * Sends heartbeats, which report the state of the relay and return jobs. At most one request is active. Between
 * heartbeats the loop waits for the interval, a wake-up of the channel, or a free slot.
 */
export class HeartbeatLoop {
  readonly #deps: HeartbeatDeps
  readonly #instanceId = randomUUID()
  readonly #wakeUps = new WakeUpLimit(() => this.#wake())
  readonly #stop = new AbortController()
  #interrupt = new AbortController()
  #intervalSeconds: number
  #isDue = false
  #isProbe = true
  #hasMoreJobs = false
  #failures = 0
  #activeUntilMs = 0
  #wantsFacts = false

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps
    this.#intervalSeconds = deps.intervalSeconds
  }

  /** Sends a heartbeat, because the channel has received a message. Anyone at the broker may have sent it. */
  onWakeUp(): void {
    this.#wakeUps.request()
  }

  /** Reports the change: without a channel, silence would make the cluster Degraded. */
  onChannelChange(): void {
    const delayMs = this.#deps.channel.isOpen ? 0 : randomMs(maxLossDelayMs)
    setTimeout(() => this.#wake(), delayMs).unref()
  }

  /** Reports changed facts. */
  onFactsChange(): void {
    this.#wake()
  }

  onSlotFreed(): void {
    this.#noteActivity()
    if (this.#hasMoreJobs) this.#wake()
  }

  stop(): void {
    this.#stop.abort()
    this.#interrupt.abort()
  }

  async run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      this.#isDue = false
      try {
        await this.#pause(await this.#sendHeartbeat())
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
  }

  // Calls in quick succession cause only one heartbeat.
  #wake(): void {
    this.#isDue = true
    this.#interrupt.abort()
  }

  async #pause(delayMs: number): Promise<void> {
    this.#interrupt = new AbortController()
    const { signal } = this.#interrupt
    if (!this.#isDue) await sleep(delayMs, undefined, { signal }).catch(() => {})
    if (this.#isDue) await sleep(wakeDelayMs, undefined, { signal: this.#stop.signal })
  }

  // Returns the delay before the next heartbeat, in milliseconds.
  async #sendHeartbeat(): Promise<number> {
    try {
      const response = await this.#call()
      this.#failures = 0
      return this.#apply(response)
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error
      this.#deps.updater.onFailed()
      return retryDelayMs(this.#failures++, error)
    }
  }

  async #call(): Promise<RelayResponse> {
    const { client, channel, journal, workers, watch, statementKeys, scriptsIsolated, facts, updater } = this.#deps
    const body: Heartbeat = {
      nodes: watch.statuses(),
      running: workers.running,
      freeSlots: this.#isProbe ? 0 : workers.freeSlots,
      statementKey: statementKeys.newest,
      instanceId: this.#instanceId,
      scriptsIsolated,
      factsHash: facts.hash,
      ...(this.#wantsFacts && { facts: facts.report() }),
      channel: channel.isOpen ? 'open' : 'closed',
      claimKey: journal.claimKey,
      update: updater.report,
    }
    const response = await client.attempt({
      path: '/heartbeat',
      body,
      timeoutMs: requestLimitMs,
      signal: this.#stop.signal,
    })
    // Facts that the platform rejects must not prevent heartbeats.
    if (response.status !== 200) this.#wantsFacts = false
    if (response.status !== 200) throw new RetryableError(`its response was ${codeOf(response)}`)
    return response
  }

  #apply({ body }: RelayResponse): number {
    const { channel, server, statementKeys, updater, workers } = this.#deps
    statementKeys.learn(body.statementKeys)
    if (Number.isInteger(body.heartbeatIntervalSeconds)) {
      this.#intervalSeconds = Math.max(1, Number(body.heartbeatIntervalSeconds))
    }
    // An earlier version of the platform says nothing about further jobs.
    this.#hasMoreJobs = body.moreJobs !== false
    server.acceptsLastOutput = typeof body.moreJobs === 'boolean'
    channel.use(body.channel)
    const cancelled = stringsIn(body.cancel)
    for (const jobId of cancelled) workers.cancel(jobId)
    const claims = claimsIn(body.claims)
    const hasStarted = this.#start(claims, body.jobs)
    const hasWork = hasStarted || claims.length > 0 || cancelled.length > 0
    if (hasWork) this.#noteActivity()
    this.#wakeUps.conclude(hasWork)
    updater.onAccepted(body.update)
    const wereSent = this.#wantsFacts
    this.#wantsFacts = body.wantsFacts === true
    const delayMs = this.#delayMs(hasStarted, claims.length > 0)
    return this.#wantsFacts && !wereSent ? Math.min(delayMs, soonMs) : delayMs
  }

  // Returns whether an offered job was started, which the relay still has to claim.
  #start(claims: readonly Claimed[], offered: unknown): boolean {
    const { workers } = this.#deps
    // A former process of this relay may have made claims with the first key. Their scripts must not start twice.
    if (this.#isProbe) workers.concludeClaims(claims)
    else if (claims.length > 0) workers.accept(claims)
    // Job ids become part of file names, so other characters are rejected.
    const jobIds = stringsIn(offered).filter((jobId) => /^\w{1,40}$/.test(jobId))
    return jobIds.filter((jobId) => workers.offer(jobId)).length > 0
  }

  #noteActivity(): void {
    this.#activeUntilMs = performance.now() + activeMs
  }

  #delayMs(hasStarted: boolean, hasClaims: boolean): number {
    const wasProbe = this.#isProbe
    this.#isProbe = false
    if (hasStarted) return claimDelayMs
    if (wasProbe) return soonMs
    if (hasClaims && this.#hasMoreJobs && this.#deps.workers.freeSlots > 0) return 0
    const intervalMs = this.#intervalSeconds * 1000
    const isActive = !this.#deps.channel.isOpen && performance.now() < this.#activeUntilMs
    return jitterMs(isActive ? Math.min(intervalMs, activeIntervalMs) : intervalMs)
  }
}

const freeWakeUps = 10
const windowMs = 10_000
const limitedMs = 1000

/** Limits wake-ups that bring no work to about one a second. */
class WakeUpLimit {
  readonly #onDue: () => void
  #fruitlessAtMs: number[] = []
  #isPending = false
  #isRequested = false

  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  request(): void {
    const startMs = performance.now() - windowMs
    this.#fruitlessAtMs = this.#fruitlessAtMs.filter((atMs) => atMs > startMs)
    const delayMs = this.#fruitlessAtMs.length < freeWakeUps ? 0 : limitedMs
    if (!this.#isPending) setTimeout(() => this.#fire(), delayMs).unref()
    this.#isPending = true
  }

  /** Call it after each heartbeat. */
  conclude(hasWork: boolean): void {
    if (this.#isRequested && !hasWork) this.#fruitlessAtMs.push(performance.now())
    this.#isRequested = false
  }

  #fire(): void {
    this.#isPending = false
    this.#isRequested = true
    this.#onDue()
  }
}
