import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type ApiResponse, describeResponse } from '../../conformance/support/answer.ts'
import { type Authorize, Client, type RequestContent } from '../../conformance/support/client.ts'
import type { Contract } from '../../conformance/support/contract.ts'
import type { ClientStats } from './records.ts'

const maxDurationMs = 60_000
const [initialPauseMs, maximumPauseMs] = [250, 5000]

export class AbandonedCall extends Error {}

/**
 * Retries as documented for the command line (docs/cli.md): with the same `Idempotency-Key`, a growing random pause,
 * and not before the time in `Retry-After`. If given, `renew` replaces an access token that the platform rejects.
 */
export class RetryingClient extends Client {
  readonly #parameters: readonly [url: string, contract: Contract, stats: ClientStats]
  readonly #renew: (() => Promise<void>) | undefined

  constructor(url: string, contract: Contract, stats: ClientStats, authorize?: Authorize, renew?: () => Promise<void>) {
    super(url, contract, authorize)
    this.#parameters = [url, contract, stats]
    this.#renew = renew
  }

  renewedBy(authorize: Authorize, renew: () => Promise<void>): RetryingClient {
    return new RetryingClient(...this.#parameters, authorize, renew)
  }

  override as(authorize: Authorize): RetryingClient {
    return new RetryingClient(...this.#parameters, authorize)
  }

  override async send(method: string, path: string, sent: RequestContent = {}): Promise<ApiResponse> {
    const stats = this.#parameters[2]
    const headers = method === 'POST' ? { 'idempotency-key': randomUUID(), ...sent.headers } : { ...sent.headers }
    stats.calls++
    const startedAtMs = performance.now()
    let [mayHaveSucceeded, lastProblem] = [false, 'no response']
    for (let attempts = 0; ; attempts++) {
      const response = await this.#sendOnce(method, path, { ...sent, headers })
      const isRejected = response?.status === 401 && this.#renew !== undefined
      if (response !== undefined && !isRejected && !isUndecided(response)) {
        stats.longestMs = Math.max(stats.longestMs, performance.now() - startedAtMs)
        if (attempts === 0) stats.decidedAtFirstTry++
        // An earlier attempt with an unknown outcome has deleted the resource.
        return method === 'DELETE' && response.status === 404 && mayHaveSucceeded
          ? { ...response, status: 204 }
          : response
      }
      stats.lastUndecidedAtMs = performance.now()
      mayHaveSucceeded ||= response === undefined || response.status >= 500
      if (response !== undefined) lastProblem = describeResponse(response)
      const pauseMs = pauseAfter(response, attempts)
      if (performance.now() - startedAtMs + pauseMs > maxDurationMs) {
        stats.abandoned.push(`${method} ${path}: ${lastProblem}`)
        throw new AbandonedCall(lastProblem)
      }
      await delay(pauseMs)
      if (isRejected) await this.#renew?.()
    }
  }

  async #sendOnce(method: string, path: string, sent: RequestContent): Promise<ApiResponse | undefined> {
    const stats = this.#parameters[2]
    try {
      const response = await this.attempt(method, path, sent)
      stats.responses++
      if (response.status === 500) stats.serverErrors.push(describeResponse(response))
      return response
    } catch (error) {
      // fetch reports connection errors as TypeError; other errors are contract violations.
      const description = `${method} ${path}: ${String(error)}`
      ;(error instanceof TypeError ? stats.connectionErrors : stats.violations).push(description)
      return undefined
    }
  }
}

const isUndecided = ({ status, body }: ApiResponse): boolean =>
  status === 429 || status >= 500 || (status === 409 && body?.error === 'conflict')

function pauseAfter(response: ApiResponse | undefined, attempts: number): number {
  const retryAfterMs = 1000 * Number(response?.headers.get('retry-after') ?? 0)
  return retryAfterMs + Math.min(maximumPauseMs, initialPauseMs * 2 ** attempts) * (0.5 + Math.random() / 2)
}
