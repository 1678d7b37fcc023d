import { expect } from 'vitest'
import { print } from './run.ts'

/**
 * Each claim prints one line with its goal and the measured value. A missed goal fails the test, but does not stop it.
 */

function claim(text: string, measured: string, goal: string, isMet: boolean): void {
  const line = `${text}: ${measured} (goal ${goal})`
  print(`${isMet ? 'ok    ' : 'MISSED'} ${line}`)
  expect.soft(isMet, line).toBe(true)
}

export function claimNone(text: string, found: number | readonly unknown[], total?: number | string): void {
  const count = typeof found === 'number' ? found : found.length
  claim(text, total === undefined ? `${count}` : `${count} of ${total.toLocaleString('en')}`, '0', count === 0)
  if (typeof found !== 'number') for (const each of found.slice(0, 40)) print(`       ${String(each).slice(0, 600)}`)
}

export const claimAll = (text: string, count: number, total: number): void =>
  claim(text, `${count}`, `${total}`, count === total)

export const claimAtLeast = (text: string, measured: number, limit: number, unit = ''): void =>
  claim(text, `${Number(measured.toPrecision(5))}${unit}`, `≥ ${limit}${unit}`, measured >= limit)

export const claimAtMost = (text: string, measured: number, limit: number, unit = ''): void =>
  claim(text, `${Number(measured.toPrecision(3))}${unit}`, `≤ ${limit}${unit}`, measured <= limit)

export const claimBetween = (text: string, measured: number, low: number, high: number): void =>
  claim(text, measured.toFixed(3), `${low.toFixed(2)} to ${high.toFixed(2)}`, measured >= low && measured <= high)

export class RoundClaims {
  readonly #counts = new Map<string, { heldCount: number; rounds: number }>()

  check(text: string, holds: boolean): void {
    const { heldCount, rounds } = this.#counts.get(text) ?? { heldCount: 0, rounds: 0 }
    this.#counts.set(text, { heldCount: heldCount + (holds ? 1 : 0), rounds: rounds + 1 })
  }

  claim(): void {
    for (const [text, { heldCount, rounds }] of this.#counts) claimAll(text, heldCount, rounds)
  }
}
