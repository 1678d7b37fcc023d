import type { Random } from '../random.ts'
import { areaUnderCurve } from './auc.ts'

/** Two kinds of guesses whose answers must take the same time. */
export interface Pair {
  claim: string
  first: () => Promise<unknown>
  second: () => Promise<unknown>
  /** How many of each. */
  count: number
  /** What the area under the curve may be: this far from one half. */
  margin: number
}

/** What else the machine does, it does to both: they take turns, and which goes first is chosen anew each time. */
async function measured({ first, second, count }: Pair, random: Random): Promise<number> {
  const times: [number[], number[]] = [[], []]
  for (let warmUp = 0; warmUp < 20; warmUp++) await (warmUp % 2 === 0 ? first() : second())
  for (let index = 0; index < count; index++) {
    const isFirst = random.isLucky(0.5)
    for (const which of isFirst ? ([0, 1] as const) : ([1, 0] as const)) {
      const startedAtMs = performance.now()
      await (which === 0 ? first() : second())
      times[which].push(performance.now() - startedAtMs)
    }
  }
  return areaUnderCurve(...times)
}

const attempts = 3

/** The area under the curve, and how often it was measured: chance alone misses the margin now and then. */
export async function areaOf(pair: Pair, random: Random): Promise<{ area: number; tries: number }> {
  let nearest = Number.NaN
  for (let tries = 1; tries <= attempts; tries++) {
    const area = await measured(pair, random)
    if (Math.abs(area - 0.5) <= pair.margin) return { area, tries }
    if (!(Math.abs(nearest - 0.5) <= Math.abs(area - 0.5))) nearest = area
  }
  return { area: nearest, tries: attempts }
}
