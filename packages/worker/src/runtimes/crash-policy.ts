import { now } from '@platform/core/clock'
import { jitter } from '@platform/core/id'

/** When something that has crashed is started again, and when no more (D43). */

const windowMs = 600_000
const limit = 5
const firstMs = 500
const longestMs = 30_000

/** The pause before the next start after so many crashes: it doubles, and is never quite the same. */
export const restartDelayMs = (crashes: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.max(0, crashes - 1)) * (0.75 + 0.25 * jitter())

/** The crashes of one deployment. */
export class CrashCounter {
  #times: number[] = []
  #last: string | undefined

  note(reason: string): void {
    this.#times.push(now())
    this.#last = reason
  }

  /** How many there were in the last ten minutes. */
  get recent(): number {
    this.#times = this.#times.filter((time) => time > now() - windowMs)
    return this.#times.length
  }

  get last(): string | undefined {
    return this.#last
  }

  /** Whether another start is pointless. */
  get areTooMany(): boolean {
    return this.recent >= limit
  }
}
