import type { Heartbeat } from '@platform/contract/relay'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { jitterMs, randomMs, retryDelayMs } from './backoff.ts'
import type { ControlChannel } from './channel.ts'
import type { Client } from './client.ts'
import { type ClaimedJob, claimsIn, type WorkerPool } from './worker-pool.ts'
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
const soonDelayMs = 200
// Without a channel, heartbeats are frequent for this time after work, because more work is likely.
const activePeriodMs = 60_000
const activeIntervalMs = 2000
// Relays that lose their channels at the same time report the loss at different times.
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

/** Sends heartbeats, one at a time. They report the state of the relay and return jobs. */
export class HeartbeatLoop {
  readonly #deps: HeartbeatDeps
  readonly #instanceId = randomUUID()
  readonly #wakeUps = new WakeUpLimit(() => this.#wake())
  readonly #stopController = new AbortController()
  #interrupt = new AbortController()
  #intervalSeconds: number
  #isDue = false
  #isProbe = true
  #hasMoreJobs = false
  #reportedSlots = 0
  #wasBlocked = false
  #failureCount = 0
  #activeUntilMs = 0
  #wantsFacts = false

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps
    this.#intervalSeconds = deps.intervalSeconds
  }

  /** Requests a heartbeat after a wake-up message, at a limited rate. */
  onWakeUp(): void {
    this.#wakeUps.request()
  }

  /** Requests a heartbeat that reports the state of the channel: at once, or within 2 s if the channel has closed. */
  onChannelChange(): void {
    const delayMs = this.#deps.channel.isOpen ? 0 : randomMs(maxLossDelayMs)
    setTimeout(() => this.#wake(), delayMs).unref()
  }

  onFactsChange(): void {
    this.#wake()
  }

  onSlotFreed(): void {
    this.#noteActivity()
    // After a failure, the next attempt follows soon, and the server may need the delay.
    if (this.#hasMoreJobs && this.#failureCount === 0) this.#wake()
  }

  /** The last heartbeat may have reported no free slots for another reason, which the end of the job may change. */
  onJobDone(): void {
    this.#noteActivity()
    if (this.#wasBlocked) this.onSlotFreed()
  }

  stop(): void {
    this.#stopController.abort()
    this.#interrupt.abort()
  }

  async run(): Promise<void> {
    const { signal } = this.#stopController
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
    if (this.#isDue) await sleep(wakeDelayMs, undefined, { signal: this.#stopController.signal })
  }

  // Returns the delay before the next heartbeat, in milliseconds.
  async #sendHeartbeat(): Promise<number> {
    try {
      const response = await this.#call()
      this.#failureCount = 0
      return this.#apply(response)
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error
      this.#deps.updater.onFailed()
      return retryDelayMs(this.#failureCount++, error)
    }
  }

  async #call(): Promise<RelayResponse> {
    const { client, channel, journal, workers, watch, statementKeys, scriptsIsolated, facts, updater } = this.#deps
    const body: Heartbeat = {
      nodes: watch.statuses(),
      running: workers.leasedJobIds,
      freeSlots: this.#isProbe ? 0 : workers.freeSlots,
      statementKey: statementKeys.newestKid,
      instanceId: this.#instanceId,
      scriptsIsolated,
      factsHash: facts.hash,
      ...(this.#wantsFacts && { facts: facts.report() }),
      channel: channel.isOpen ? 'open' : 'closed',
      claimKey: journal.claimKey,
      update: updater.report,
    }
    this.#reportedSlots = body.freeSlots
    this.#wasBlocked = workers.isBlocked
    const response = await client.attempt({
      path: '/heartbeat',
      body,
      timeoutMs: requestLimitMs,
      signal: this.#stopController.signal,
      isSuccess: ({ status, body }) =>
        status === 200 && Number.isInteger(body.heartbeatIntervalSeconds) && typeof body.serverTime === 'string',
    })
    // Facts that the platform rejects must not prevent later heartbeats.
    if (response.status !== 200) this.#wantsFacts = false
    if (response.status !== 200) throw new RetryableError(`its response was ${codeOf(response)}`)
    return response
  }

  #apply({ body }: RelayResponse): number {
    const { channel, server, statementKeys, updater, workers } = this.#deps
    statementKeys.learn(body.statementKeys)
    this.#intervalSeconds = Math.max(1, Number(body.heartbeatIntervalSeconds))
    // An earlier version of the platform does not report whether it has further jobs.
    this.#hasMoreJobs = body.moreJobs !== false
    server.acceptsLastOutput = typeof body.moreJobs === 'boolean'
    channel.use(body.channel)
    const cancelledIds = stringsIn(body.cancel)
    const hasCancelled = cancelledIds.filter((jobId) => workers.cancel(jobId)).length > 0
    const claims = claimsIn(body.claims)
    const hasStarted = this.#start(claims, body.jobs)
    const hasWork = hasStarted || claims.length > 0 || hasCancelled
    if (hasWork) this.#noteActivity()
    this.#wakeUps.conclude(hasWork)
    updater.onAccepted(body.update)
    const wereFactsSent = this.#wantsFacts
    this.#wantsFacts = body.wantsFacts === true
    const delayMs = this.#nextDelayMs(hasStarted, claims.length > 0)
    return this.#wantsFacts && !wereFactsSent ? Math.min(delayMs, soonDelayMs) : delayMs
  }

  // Starts the claimed and the offered jobs. Returns whether an offered job was started for the first time.
  #start(claims: readonly ClaimedJob[], offeredJobs: unknown): boolean {
    const { workers } = this.#deps
    // The first heartbeat has no free slots, so the claims are those of a former process. Their scripts do not start.
    if (this.#isProbe) workers.concludeClaims(claims)
    else if (claims.length > 0) workers.accept(claims)
    // Job ids become part of file names, so only ids of this form are accepted.
    const jobIds = stringsIn(offeredJobs).filter((jobId) => /^\w{1,40}$/.test(jobId))
    return jobIds.filter((jobId) => workers.offer(jobId)).length > 0
  }

  #noteActivity(): void {
    this.#activeUntilMs = performance.now() + activePeriodMs
  }

  #nextDelayMs(hasStarted: boolean, hasClaims: boolean): number {
    const wasProbe = this.#isProbe
    this.#isProbe = false
    if (hasStarted) return claimDelayMs
    if (wasProbe) return soonDelayMs
    // A slot may have become free after the request, when it was not known that jobs wait for it.
    const { freeSlots } = this.#deps.workers
    if (this.#hasMoreJobs && (hasClaims ? freeSlots > 0 : freeSlots > this.#reportedSlots)) return 0
    const intervalMs = this.#intervalSeconds * 1000
    const isActive = !this.#deps.channel.isOpen && performance.now() < this.#activeUntilMs
    return jitterMs(isActive ? Math.min(intervalMs, activeIntervalMs) : intervalMs)
  }
}

const maxFreeWakeUps = 10
const windowMs = 10_000
const limitedDelayMs = 1000

/** Limits wake-ups that bring no work: after ten of them within ten seconds, to about one per second. */
class WakeUpLimit {
  readonly #onDue: () => void
  #fruitlessTimesMs: number[] = []
  #isPending = false
  #isRequested = false

  constructor(onDue: () => void) {
    this.#onDue = onDue
  }

  request(): void {
    const startMs = performance.now() - windowMs
    this.#fruitlessTimesMs = this.#fruitlessTimesMs.filter((atMs) => atMs > startMs)
    const delayMs = this.#fruitlessTimesMs.length < maxFreeWakeUps ? 0 : limitedDelayMs
    if (!this.#isPending) setTimeout(() => this.#fire(), delayMs).unref()
    this.#isPending = true
  }

  /** Called after each successful heartbeat. */
  conclude(hasWork: boolean): void {
    if (this.#isRequested && !hasWork) this.#fruitlessTimesMs.push(performance.now())
    this.#isRequested = false
  }

  #fire(): void {
    this.#isPending = false
    this.#isRequested = true
    this.#onDue()
  }
}
