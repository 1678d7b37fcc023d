import { atMost, type Goal, type Section } from '../support/section.ts'
import { ratios, spread } from '../support/statistics.ts'
import { type BuiltBundle, unwantedIn } from './bundles.ts'
import type { FirstEvent } from './events.ts'
import type { Start } from './start.ts'

/** A program that answers its first event again and again, in a fresh process each time. */
export interface Contestant extends BuiltBundle {
  event: FirstEvent
  cold: Start[]
  /** With a compile cache. */
  cached: Start[]
}

/** A function or a peer, and the bare handler that it is compared with. */
export interface Pair {
  entry: Contestant
  floor: Contestant
  isPeer?: true
}

const kib = (bytes: number): number => bytes / 1024
const megabytes = (bytes: number): number => bytes / 1e6

const wall = (starts: readonly Start[]): number[] => starts.map(({ wallMs }) => wallMs)
const cpu = (starts: readonly Start[]): number[] => starts.map(({ cpuMs }) => cpuMs)
const resident = (starts: readonly Start[]): number[] => starts.map(({ residentBytes }) => residentBytes)

/** The table of all pairs, and what functions have to keep to. */
export function coldSection(pairs: readonly Pair[]): Section {
  return {
    title: 'Functions as deployed, and their first response',
    columns: [
      'function',
      'KiB',
      'gzip',
      'late',
      'ms',
      'ratio',
      'CPU ms',
      'CPU ratio',
      'min',
      'max',
      'cached',
      'MB',
      'MB ratio',
    ],
    rows: pairs.flatMap(({ entry, floor }, index) => [
      ...(pairs[index - 1]?.floor === floor ? [] : [rowOf(floor, floor)]),
      rowOf(entry, floor),
    ]),
    goals: pairs.filter(({ isPeer }) => isPeer !== true).flatMap(goalsOf),
  }
}

function rowOf({ name, bytes, gzipBytes, lateBytes, cold, cached }: Contestant, floor: Contestant) {
  const { median, min, max } = ratios(cpu(cold), cpu(floor.cold))
  return [
    name,
    kib(bytes),
    kib(gzipBytes),
    kib(lateBytes),
    spread(wall(cold)).median,
    ratios(wall(cold), wall(floor.cold)).median,
    spread(cpu(cold)).median,
    median,
    min,
    max,
    ratios(cpu(cached), cpu(floor.cold)).median,
    megabytes(spread(resident(cold)).median),
    ratios(resident(cold), resident(floor.cold)).median,
  ]
}

function goalsOf({ entry, floor }: Pair): Goal[] {
  const { name, bytes, gzipBytes, cold, cached } = entry
  const first = `${name}: CPU until the first answer`
  return [
    atMost(`${name}: KiB at first`, kib(bytes), 490),
    atMost(`${name}: KiB at first, gzip`, kib(gzipBytes), 160),
    atMost(`${name}: unwanted code at first`, unwantedIn(entry).length, 0),
    atMost(`${first}, × floor`, ratios(cpu(cold), cpu(floor.cold)).median, 1.3),
    atMost(`${first}, with a compile cache, × floor`, ratios(cpu(cached), cpu(floor.cold)).median, 1.12),
    atMost(`${name}: memory at its first answer, × floor`, ratios(resident(cold), resident(floor.cold)).median, 1.1),
  ]
}
