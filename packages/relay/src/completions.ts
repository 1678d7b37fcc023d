import type { Completion, CompletionResult, CompletionsRequest } from '@platform/contract/relay'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomMs, retryDelayMs } from './backoff.ts'
import { maxRequestBytes } from './backlog.ts'
import type { Client } from './client.ts'
import { codeOf, RetryableError } from './http.ts'
import { isJsonObject } from './json.ts'

// The limit of the server for one request. The server also limits the output in a request to `maxRequestBytes`. The relay
// compares this limit with the size of the reports in JSON, which is never smaller than their output.
const maxCompletions = 10
// A request without a response delays the next one for at most this time.
const maxWaitMs = 1000
const maxSpreadMs = 1000

type Report = {
  jobId: string
  body: Completion
  sizeBytes: number
  settle: (errorCode: Promise<string | undefined>) => void
}

/** Reports the results of jobs. Results that become known during a request share the next request. */
export class Completions {
  readonly #client: Pick<Client, 'attempt' | 'deliver'>
  readonly #signal: AbortSignal
  #waiting: Report[] = []
  #isSending = false

  constructor(client: Pick<Client, 'attempt' | 'deliver'>, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
  }

  /**
   * Resolves to undefined if the server accepts the report, else to the error code. Repeats the report until the server
   * decides. Rejects if the signal aborts.
   */
  report(jobId: string, body: Completion): Promise<string | undefined> {
    return new Promise((settle) => {
      this.#waiting.push({ jobId, body, sizeBytes: Buffer.byteLength(JSON.stringify(body)), settle })
      if (!this.#isSending) void this.#sendWaiting()
    })
  }

  async #sendWaiting(): Promise<void> {
    this.#isSending = true
    // If a request takes long, all waiting reports are sent at once.
    for (let isSlow = false; this.#waiting.length > 0;) {
      const reports = this.#takeNext()
      const sending = reports.length > 1 ? this.#sendTogether(reports) : this.#sendSeparately(reports)
      // A large report would not share its request with others anyway.
      const isLarge = reports.length === 1 && (reports[0]?.sizeBytes ?? 0) > maxRequestBytes / 2
      if (!isSlow && !isLarge) isSlow = await isSlowerThan(maxWaitMs, sending)
    }
    this.#isSending = false
  }

  #takeNext(): Report[] {
    let [count, sizeBytes] = [0, 0]
    for (const report of this.#waiting.slice(0, maxCompletions)) {
      sizeBytes += report.sizeBytes
      if (count > 0 && sizeBytes > maxRequestBytes) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #sendSeparately(reports: readonly Report[], maxDelayMs = 0): Promise<void> {
    const sending = reports.map(async ({ jobId, body, settle }) => {
      if (maxDelayMs > 0) await sleep(randomMs(maxDelayMs), undefined, { signal: this.#signal }).catch(() => {})
      const delivery = this.#client.deliver({
        path: `/jobs/${jobId}/complete`,
        body,
        signal: this.#signal,
        isSuccess: ({ status, body }) => status === 200 && body.jobId === jobId && typeof body.status === 'string',
      })
      settle(delivery.then((response) => (response.status === 200 ? undefined : codeOf(response))))
      await delivery.catch(() => {})
    })
    await Promise.all(sending)
  }

  // Sends the reports without a result separately, because the server may not be able to process one of them. Random
  // delays spread their requests, because they change the same cluster.
  async #sendTogether(reports: readonly Report[]): Promise<void> {
    const results = await this.#resultsOf(reports)
    for (const { jobId, settle } of reports) {
      const result = results.get(jobId)
      if (result !== undefined) settle(Promise.resolve(result.error))
    }
    await this.#sendSeparately(
      reports.filter(({ jobId }) => !results.has(jobId)),
      maxSpreadMs,
    )
  }

  async #resultsOf(reports: readonly Report[]): Promise<Map<string, CompletionResult>> {
    const body: CompletionsRequest = { completions: reports.map((each) => ({ jobId: each.jobId, ...each.body })) }
    try {
      const response = await this.#client.attempt({
        path: '/completions',
        body,
        signal: this.#signal,
        isSuccess: ({ status, body }) => status === 200 && Array.isArray(body.results),
      })
      const results: unknown[] = Array.isArray(response.body.results) ? response.body.results : []
      return new Map(results.filter(isResult).map((result) => [result.jobId, result]))
    } catch (error) {
      const signal = this.#signal
      if (error instanceof RetryableError) await sleep(retryDelayMs(0, error), undefined, { signal }).catch(() => {})
      return new Map()
    }
  }
}

const isSlowerThan = (limitMs: number, work: Promise<void>): Promise<boolean> =>
  Promise.race([work.then(() => false), sleep(limitMs, true, { ref: false })])

const isResult = (value: unknown): value is CompletionResult =>
  isJsonObject(value) &&
  typeof value.jobId === 'string' &&
  (typeof value.error === 'string' || (value.error === undefined && typeof value.status === 'string'))
