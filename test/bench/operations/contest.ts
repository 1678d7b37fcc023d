import type { TestRequest } from '../../support/request.ts'
import { startHandlers } from '../support/handlers.ts'
import { metered } from '../support/meter.ts'
import { type Peer, peerNames } from '../support/peers.ts'
import { range, ratios, shuffled, type Spread, spread } from '../support/statistics.ts'

const allSides = ['platform', 'floor', ...peerNames] as const
export type Side = (typeof allSides)[number]

/** One operation, the modules that serve it, and requests for all of them. */
export interface Contest {
  name: string
  sides: { platform: string; floor: string } & Partial<Record<Peer, string>>
  requests(count: number): Promise<TestRequest[]>
}

/** What the rounds of one side took. */
interface Taken {
  /** Microseconds of CPU time of a request. */
  cpu: number[]
  /** Read and write units of a round. */
  units: number[]
}

/** A contest, and what each side took, round by round. */
export interface Result {
  contest: Contest
  taken: Map<Side, Taken>
}

/** The median of the microseconds that a side takes for a request. */
export const microseconds = (result: Result, side: Side): number => spread(cpuOf(result, side)).median

/** What a side takes, as multiples of what another took in the same round. */
export const slowdown = (result: Result, side: Side, other: Side = 'floor'): Spread =>
  ratios(cpuOf(result, side), cpuOf(result, other))

const cpuOf = ({ taken }: Result, side: Side): readonly number[] => taken.get(side)?.cpu ?? []

/** How long a race is: requests of a round come one after another. */
export interface Length {
  rounds: number
  warmUps: number
  count: number
}

/**
 * Has all sides of all contests serve the same requests, in random order, each in a process of its own. Rejects where
 * one refuses, answers more or less than the others, or asks more or less of the store.
 */
export async function raceContests(
  contests: readonly Contest[],
  { rounds, warmUps, count }: Length,
  environment: Record<string, string> = {},
): Promise<Result[]> {
  const results = contests.map(newResult)
  await using processes = startAll(results, environment)
  for (const round of range(warmUps + rounds)) {
    for (const { contest, taken } of shuffled(results)) {
      const bodies = new Map<Side, number>()
      for (const [side, { cpu, units }] of shuffled([...taken])) {
        const requests = await contest.requests(count)
        const { result, usage } = await metered(() => processes.run(contest, side, requests))
        bodies.set(side, result.bodyBytes)
        if (round < warmUps) continue
        cpu.push(result.cpuMicroseconds / count)
        units.push(usage.readUnits + usage.writeUnits)
      }
      if (new Set(bodies.values()).size > 1)
        throw new Error(`${contest.name}: not all answer the same: ${told(bodies)}.`)
    }
  }
  results.forEach(checkCapacity)
  return results
}

function newResult(contest: Contest): Result {
  const names = allSides.filter((side) => contest.sides[side] !== undefined)
  return { contest, taken: new Map(names.map((name) => [name, { cpu: [], units: [] }])) }
}

const processOf = ({ sides }: Contest, side: Side): string => `${side} of ${sides.platform}`

/** A process for each side of each function, as a warm sandbox serves one function only: what others do cools none. */
function startAll(results: readonly Result[], environment: Record<string, string>) {
  const names = new Set(
    results.flatMap(({ contest, taken }) => [...taken.keys()].map((side) => processOf(contest, side))),
  )
  const processes = new Map([...names].map((name) => [name, startHandlers(environment)]))
  return {
    run: (contest: Contest, side: Side, requests: readonly TestRequest[]) => {
      const [module, handlers] = [contest.sides[side], processes.get(processOf(contest, side))]
      if (module === undefined || handlers === undefined) throw new Error(`${contest.name} has no side ${side}.`)
      return handlers.run(module, requests)
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...processes.values()].map((handlers) => handlers[Symbol.asyncDispose]()))
    },
  }
}

/** Single rounds may differ: a beat moves its cluster's entry in the index of what is due once in a while. */
function checkCapacity({ contest, taken }: Result): void {
  const units = new Map([...taken].map(([side, { units }]) => [side, spread(units).median]))
  if (new Set(units.values()).size > 1) throw new Error(`${contest.name}: not all do the same: ${told(units)} units.`)
}

const told = (numbers: ReadonlyMap<Side, number>): string =>
  [...numbers].map(([side, number]) => `${side} ${number}`).join(', ')
