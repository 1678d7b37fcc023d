import type { Heartbeat } from '@platform/contract/relay'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { backOffMs, retryDelayMs, jitterMs } from './backoff.ts'
import type { Client } from './client.ts'
import type { WorkerPool } from './worker-pool.ts'
import { type RelayResponse, codeOf, RetryableError } from './http.ts'
import { stringsIn } from './json.ts'
import type { StatementKeys } from './statement-keys.ts'
import type { NodeWatch } from './node-watch.ts'

const maxWaitSeconds = 25
const responseMarginMs = 15_000
// Claims need time to complete; an earlier heartbeat would return the same jobs again.
const claimDelayMs = 200
const wakeDelayMs = 50
const earlyResponseMs = 1000
const immediateRepeats = 10

export type HeartbeatDeps = {
  client: Client
  workers: WorkerPool
  watch: NodeWatch
  statementKeys: StatementKeys
  intervalSeconds: number
  scriptsIsolated: boolean
}

/** Sends heartbeats, which report the state of the relay and return offered jobs. At most one request is active. */
export class HeartbeatLoop {
  readonly #deps: HeartbeatDeps
  readonly #instanceId = randomUUID()
  #intervalSeconds: number
  #interrupt = new AbortController()
  #wakeTimer: NodeJS.Timeout | undefined
  #stopped = false
  #failures = 0
  #emptyResponses = 0
  // The first heartbeat, and the first one after an error, do not use long polling, so that they show quickly whether
  // the server responds.
  #mayLongPoll = false

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps
    this.#intervalSeconds = deps.intervalSeconds
  }

  /** Sends a heartbeat soon. Calls in quick succession cause only one. */
  wake(): void {
    this.#wakeTimer ??= setTimeout(() => this.#interrupt.abort(), wakeDelayMs)
  }

  stop(): void {
    this.#stopped = true
    this.#interrupt.abort()
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#interrupt = new AbortController()
      clearTimeout(this.#wakeTimer)
      this.#wakeTimer = undefined
      const { signal } = this.#interrupt
      try {
        await sleep(await this.#sendHeartbeat(signal), undefined, { signal })
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
  }

  // Returns the delay before the next heartbeat, in milliseconds.
  async #sendHeartbeat(signal: AbortSignal): Promise<number> {
    const mayLongPoll = this.#mayLongPoll
    const startedMs = performance.now()
    try {
      const response = await this.#call(signal)
      this.#mayLongPoll = true
      this.#failures = 0
      if (this.#apply(response) || !mayLongPoll) return this.#delayAfterJobsMs()
      return this.#delayMs(response, performance.now() - startedMs)
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error
      this.#mayLongPoll = false
      return retryDelayMs(this.#failures++, error)
    }
  }

  async #call(signal: AbortSignal): Promise<RelayResponse> {
    const { client, workers, watch, statementKeys, scriptsIsolated } = this.#deps
    const waitSeconds = this.#mayLongPoll ? Math.min(maxWaitSeconds, this.#intervalSeconds) : 0
    const body: Heartbeat = {
      nodes: watch.statuses(),
      running: workers.running,
      freeSlots: workers.freeSlots,
      statementKey: statementKeys.newest,
      instanceId: this.#instanceId,
      scriptsIsolated,
    }
    const response = await client.attempt({
      path: '/heartbeat',
      body,
      headers: waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {},
      timeoutMs: waitSeconds * 1000 + responseMarginMs,
      signal,
    })
    if (response.status !== 200) throw new RetryableError(`its response was ${codeOf(response)}`)
    return response
  }

  // Returns whether a new job was started.
  #apply({ body }: RelayResponse): boolean {
    const { workers, statementKeys } = this.#deps
    statementKeys.learn(body.statementKeys)
    if (Number.isInteger(body.heartbeatIntervalSeconds)) {
      this.#intervalSeconds = Math.max(1, Number(body.heartbeatIntervalSeconds))
    }
    for (const jobId of stringsIn(body.cancel)) workers.cancel(jobId)
    // Job ids become part of file names, so other characters are rejected.
    const jobIds = stringsIn(body.jobs).filter((jobId) => /^\w{1,40}$/.test(jobId))
    return jobIds.filter((jobId) => workers.offer(jobId)).length > 0
  }

  #delayAfterJobsMs(): number {
    this.#emptyResponses = 0
    return claimDelayMs
  }

  #delayMs({ headers, body }: RelayResponse, durationMs: number): number {
    const intervalMs = this.#intervalSeconds * 1000
    const wasLongPoll = headers.get('preference-applied')?.startsWith('wait') === true
    if (!wasLongPoll && stringsIn(body.jobs).length === 0) return jitterMs(intervalMs)
    if (durationMs > earlyResponseMs) this.#emptyResponses = 0
    // A response before the end of the wait normally has new jobs. Repeated early responses without jobs would cause a
    // tight loop.
    return Math.min(intervalMs, backOffMs(this.#emptyResponses++ - immediateRepeats))
  }
}
