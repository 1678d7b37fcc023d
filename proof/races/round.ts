import { type Caller } from '@platform/core/caller'
import { issueAccessToken } from '@platform/core/signing/access-token'
import { posting } from '../../test/support/event.ts'
import type { Answer, Call } from './caller.ts'
import type { Callers } from './callers.ts'

/** What the rounds of all races are made of. */

/** What a race runs with. */
export interface Race {
  callers: Callers
  /** A number from 0 to 1, by the seed. */
  random: () => number
  say: (line: string) => void
}

/** Says every so often how far a race is. */
export function saying(say: Race['say'], what: string, total: number): (done: number) => void {
  let saidAtMs = performance.now()
  return (done) => {
    if (performance.now() - saidAtMs < 15_000) return
    saidAtMs = performance.now()
    say(`${what}: ${done} of ${total}`)
  }
}

export const refreshing = (refreshToken: string): Call => ({
  function: 'auth',
  sent: posting('/api/v1/auth/refresh', { refreshToken }),
})

/** The header of a caller, whose token has just been signed. */
export const bearerOf = async (caller: Caller): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await issueAccessToken({ ...caller, roles: ['OrgAdmin'] })}`,
})

/**
 * A delay that hovers where neither of two wins always: longer after each round that came too early, shorter after each that
 * came too late, however busy the machine is.
 */
export class Balance {
  #ms = 4

  /** In milliseconds, with some chance. */
  next(random: () => number): number {
    return Math.floor(this.#ms * (0.5 + random()))
  }

  wasTooEarly(isTooEarly: boolean): void {
    this.#ms = isTooEarly ? Math.min(this.#ms * 1.6 + 1, 2000) : this.#ms * 0.6
  }
}

/** The first answer that each caller got. */
export const firstOf = (answers: readonly Answer[][]): Answer[] => answers.flatMap(([first]) => first ?? [])

export const withStatus = (answers: readonly Answer[], ...statuses: number[]): Answer[] =>
  answers.filter(({ status }) => statuses.includes(status))
