import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, show } from '../../conformance/support/answer.ts'
import { type Authorize, Client, type Sent } from '../../conformance/support/client.ts'
import type { Contract } from '../../conformance/support/contract.ts'
import type { Tally } from './tally.ts'

/** As long as the command line tries again: a minute. */
const patienceMs = 60_000
const [firstPauseMs, longestPauseMs] = [250, 5000]

/**
 * A client that tries again as it is documented (docs/cli.md): what is undecided is sent again with the same
 * `Idempotency-Key`, with a growing, random pause, and not before the time in `Retry-After`.
 */
export class PatientClient extends Client {
  readonly #url: string
  readonly #held: Contract
  readonly #tally: Tally

  constructor(url: string, contract: Contract, tally: Tally, authorize?: Authorize) {
    super(url, contract, authorize)
    this.#url = url
    this.#held = contract
    this.#tally = tally
  }

  override as(authorize: Authorize): PatientClient {
    return new PatientClient(this.#url, this.#held, this.#tally, authorize)
  }

  override async send(method: string, path: string, sent: Sent = {}): Promise<Answer> {
    const headers = method === 'POST' ? { 'idempotency-key': randomUUID(), ...sent.headers } : sent.headers
    const keyed = { ...sent, ...(headers !== undefined && { headers }) }
    this.#tally.calls++
    const startedAtMs = performance.now()
    let [isMaybeDone, last] = [false, 'nothing']
    for (let tries = 0; ; tries++) {
      const answer = await this.#once(method, path, keyed)
      if (answer !== undefined && !isUndecided(answer)) {
        if (tries === 0) this.#tally.decidedAtOnce++
        // Gone by the try whose answer was lost.
        return method === 'DELETE' && answer.status === 404 && isMaybeDone ? { ...answer, status: 204 } : answer
      }
      this.#tally.lastUndecidedAtMs = performance.now()
      isMaybeDone ||= answer === undefined || answer.status >= 500
      last = answer === undefined ? last : show(answer)
      const pauseMs = pauseAfter(answer, tries)
      if (performance.now() - startedAtMs + pauseMs > patienceMs) return this.#giveUp(`${method} ${path}: ${last}`)
      await delay(pauseMs)
    }
  }

  /** One try, counted; undefined where there is no answer, or none that may be taken for one. */
  async #once(method: string, path: string, sent: Sent): Promise<Answer | undefined> {
    try {
      const answer = await this.attempt(method, path, sent)
      this.#tally.answers++
      if (answer.status === 500) this.#tally.faults.push(show(answer))
      return answer
    } catch (error) {
      const { message, cause } = error instanceof Error ? error : new Error(String(error))
      // So `fetch` says that nobody answers, or that an answer was cut off; all else is the contract's complaint.
      if (error instanceof TypeError) this.#tally.unanswered.push(`${method} ${path}: ${message} ${String(cause)}`)
      else this.#tally.violations.push(message)
      return undefined
    }
  }

  #giveUp(what: string): never {
    this.#tally.givenUp.push(what)
    throw new GivenUp(what)
  }
}

/** Thrown where a call stays undecided for longer than a client has patience. */
export class GivenUp extends Error {}

const isUndecided = ({ status, body }: Answer): boolean =>
  status === 429 || status >= 500 || (status === 409 && body?.error === 'conflict')

function pauseAfter(answer: Answer | undefined, tries: number): number {
  const toldMs = 1000 * Number(answer?.headers.get('retry-after') ?? 0)
  return toldMs + Math.min(longestPauseMs, firstPauseMs * 2 ** tries) * (0.5 + Math.random() / 2)
}
