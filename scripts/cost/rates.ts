import { batchParts, idleHour, singleJob } from './fleets.ts'
import type { Flow, Inputs } from './inputs.ts'
import { flowOf, millisecondsOf } from './usage.ts'

/** How much of each fits into a limit if nothing else uses it; undefined for what does not use it. */
export interface Rates {
  /** Relays that only beat. */
  relays?: number | undefined
  /** Jobs a second, from their request to their result. */
  single?: number | undefined
  batch?: number | undefined
}

/** What a limit lets through, and what is seen when it comes. */
export interface Limit {
  name: string
  /** What there is of it, in words. */
  capacity: string
  rates: Rates
  seen: string
  remedy: string
}

/** How much of a limit a flow takes. */
export type Demand = (flow: Flow) => number

/** What fits into a limit: `capacity` is what there is of it in a second. */
export function ratesOf(inputs: Inputs, capacity: number, demand: Demand): Rates {
  const per = (name: string) => demand(flowOf(inputs, name)) / flowOf(inputs, name).per
  const fitting = (taken: number) => (taken === 0 ? undefined : capacity / taken)
  return {
    relays: fitting(per(idleHour) / 3600),
    single: fitting(per(singleJob)),
    batch: fitting(batchParts.reduce((sum, name) => sum + per(name), 0)),
  }
}

export const inPartition =
  (kind: string): Demand =>
  ({ partitions }) =>
    partitions[kind] ?? 0

/** Seconds that functions run. */
export const secondsOf =
  (inputs: Inputs, isCounted: (name: string) => boolean = () => true): Demand =>
  ({ functions }) =>
    Object.entries(functions)
      .filter(([name]) => isCounted(name))
      .reduce((sum, [, own]) => sum + millisecondsOf(inputs, own) / 1000, 0)

/** An alarm of the deployment. Throws where there is none of that name: the page would lie. */
export function alarmOf({ units }: Inputs, name: string): string {
  if (!units.deployment.alarms.includes(name)) throw new Error(`There is no alarm ${name}.`)
  return `Alarm \`${name}\``
}
