import type { Heartbeat } from '@platform/contract/relay'
import { setTimeout as sleep } from 'node:timers/promises'
import { backOffMs, retryPauseMs, jitterMs } from './backoff.ts'
import type { Client } from './client.ts'
import type { WorkerPool } from './worker-pool.ts'
import { type RelayResponse, codeOf, RetryableError } from './http.ts'
import { textsIn } from './json.ts'
import type { NodeWatch } from './node-watch.ts'

const longestWaitSeconds = 25
const answerMarginMs = 15_000
// Gives claims time to complete, so the next heartbeat does not offer the same jobs again.
const claimMs = 200
const nudgeMs = 50
const quickMs = 1000
const freeRepeats = 10

export type HeartbeatDeps = { client: Client; crew: WorkerPool; watch: NodeWatch; intervalSeconds: number }

/** Sends heartbeats, which report the state of the relay and return offered jobs. One is in flight at a time. */
export class HeartbeatLoop {
  readonly #parts: HeartbeatDeps
  #intervalSeconds: number
  #interrupt = new AbortController()
  #nudge: NodeJS.Timeout | undefined
  #stopped = false
  #failures = 0
  #fruitless = 0
  // The first heartbeat, and the first after an error, is no long poll: it shows at once whether the server responds.
  #mayHold = false

  constructor(parts: HeartbeatDeps) {
    this.#parts = parts
    this.#intervalSeconds = parts.intervalSeconds
  }

  /** Sends a heartbeat at once; calls in quick succession cause one. */
  nudge(): void {
    this.#nudge ??= setTimeout(() => this.#interrupt.abort(), nudgeMs)
  }

  stop(): void {
    this.#stopped = true
    this.#interrupt.abort()
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      this.#interrupt = new AbortController()
      clearTimeout(this.#nudge)
      this.#nudge = undefined
      const { signal } = this.#interrupt
      try {
        await sleep(await this.#beat(signal), undefined, { signal })
      } catch (error) {
        if (!signal.aborted) throw error
      }
    }
  }

  /** Returns the milliseconds to wait before the next heartbeat. */
  async #beat(signal: AbortSignal): Promise<number> {
    const mayHold = this.#mayHold
    const startedMs = performance.now()
    try {
      const answer = await this.#call(signal)
      this.#mayHold = true
      this.#failures = 0
      if (this.#take(answer) || !mayHold) return this.#soon()
      return this.#pauseMs(answer, performance.now() - startedMs)
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error
      this.#mayHold = false
      return retryPauseMs(this.#failures++, error)
    }
  }

  async #call(signal: AbortSignal): Promise<RelayResponse> {
    const { client, crew, watch } = this.#parts
    const waitSeconds = this.#mayHold ? Math.min(longestWaitSeconds, this.#intervalSeconds) : 0
    const body: Heartbeat = { nodes: watch.statuses(), running: crew.running, freeSlots: crew.freeSlots }
    const answer = await client.attempt({
      path: '/heartbeat',
      body,
      headers: waitSeconds > 0 ? { prefer: `wait=${waitSeconds}` } : {},
      timeoutMs: waitSeconds * 1000 + answerMarginMs,
      signal,
    })
    if (answer.status !== 200) throw new RetryableError(`its response was ${codeOf(answer)}`)
    return answer
  }

  /** Applies a response; returns whether it brought new jobs. */
  #take({ body }: RelayResponse): boolean {
    const { crew } = this.#parts
    if (Number.isInteger(body.heartbeatIntervalSeconds)) {
      this.#intervalSeconds = Math.max(1, Number(body.heartbeatIntervalSeconds))
    }
    for (const jobId of textsIn(body.cancel)) crew.cancel(jobId)
    // The id becomes part of file names.
    const offers = textsIn(body.jobs).filter((jobId) => /^\w{1,40}$/.test(jobId))
    return offers.filter((jobId) => crew.offer(jobId)).length > 0
  }

  #soon(): number {
    this.#fruitless = 0
    return claimMs
  }

  #pauseMs({ headers, body }: RelayResponse, tookMs: number): number {
    const intervalMs = this.#intervalSeconds * 1000
    const wasHeld = headers.get('preference-applied')?.startsWith('wait') === true
    if (!wasHeld && textsIn(body.jobs).length === 0) return jitterMs(intervalMs)
    if (tookMs > quickMs) this.#fruitless = 0
    // An early response announces new jobs. Repeated early responses without any would cause a tight loop.
    return Math.min(intervalMs, backOffMs(this.#fruitless++ - freeRepeats))
  }
}
