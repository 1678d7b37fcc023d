import {
  asyncProperty,
  check,
  defaultReportMessage,
  integer,
  type Scheduler,
  scheduler as anySchedule,
} from 'fast-check'
import { all, type Effort, type Figure } from '../part.ts'

/** A transition that several callers attempt in one process, in every order. */
export interface Scenario {
  /** What holds in every schedule. */
  claim: string
  runs: { whole: number; short: number }
  /** How many callers there may be. */
  callers: { min: number; max: number }
  /** Lets them do it, and throws where what holds does not. */
  play: (scheduler: Scheduler, callers: number) => Promise<void>
}

/** Plays a scenario by many schedules; prints the one that fails. */
export async function playAll(scenario: Scenario, { isShort, seed, say }: Effort): Promise<Figure[]> {
  const { claim, runs, callers, play } = scenario
  const numRuns = isShort ? runs.short : runs.whole
  const orders = new Set<string>()
  let [played, saidAtMs] = [0, performance.now()]
  const property = asyncProperty(anySchedule(), integer(callers), async (scheduler, count) => {
    await play(scheduler, count)
    orders.add(
      scheduler
        .report()
        .map(({ label }) => label)
        .join('\n'),
    )
    played++
    if (performance.now() - saidAtMs < 15_000) return
    saidAtMs = performance.now()
    say(`${claim}: ${played} of ${numRuns} schedules`)
  })
  const details = await check(property, { seed, numRuns })
  if (details.failed) say(defaultReportMessage(details) ?? claim)
  const name = `${claim}: schedules in which that holds (${orders.size} different ones, seed ${seed})`
  return [all(name, details.failed ? details.numRuns - 1 : details.numRuns, numRuns)]
}

/** Throws unless something holds. */
export function must(holds: boolean, words: string): void {
  if (!holds) throw new Error(words)
}

/** How each of several callers ended: the code of the fault, or `done`. */
export const endsOf = (settled: readonly PromiseSettledResult<unknown>[]): string[] =>
  settled.map((each) => (each.status === 'fulfilled' ? 'done' : String(each.reason.code ?? each.reason)))

/** What those were answered who got an answer. */
export const answersOf = (settled: readonly PromiseSettledResult<any>[]): any[] =>
  settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))

/** Throws unless each end is one of these. */
export function mustEnd(ends: readonly string[], ...allowed: string[]): void {
  must(
    ends.every((end) => allowed.includes(end)),
    `Callers ended with ${ends.join(', ')}.`,
  )
}

export const countOf = (ends: readonly string[], end: string): number => ends.filter((each) => each === end).length
