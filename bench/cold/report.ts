import { atMost, type Goal, type Section } from '../support/section.ts'
import { ratios, spread } from '../support/statistics.ts'
import { peersNote } from '../support/peers.ts'
import { type BuiltBundle, unwantedIn } from './bundles.ts'
import type { FirstEvent } from './events.ts'
import type { Start } from './start.ts'
import { coldColumns, coldTitle } from './table.ts'

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
  const [first] = pairs
  const nest = pairs.find(({ entry }) => entry.name === 'peer: nest')?.entry
  if (nest === undefined) throw new Error('NestJS did not take part.')
  return {
    title: coldTitle,
    notes: [
      `From the start of a process to its first answer, its first calls of the store included, with the settings of a deployment on AWS. A floor is a bare handler that makes its first calls with the raw SDK clients that the functions below it have as well, bundled as anybody would, the SDK's credential chain and all. The portal, which asks nothing of AWS, stands beside the smallest of them. ${first?.floor.cold.length ?? 0} rounds in random order; a ratio compares within one round. The goal is for CPU time, which a busy machine blurs less; min and max are of its ratio. KiB is what a process loads before it can answer, late what it loads when something needs it. "Cached" is the CPU ratio with NODE_COMPILE_CACHE, against the floor without; "× nest" is CPU time as well, MB the resident set.`,
      '',
      peersNote,
    ],
    columns: coldColumns,
    rows: pairs.flatMap(({ entry, floor }, index) => [
      ...(pairs[index - 1]?.floor === floor ? [] : [rowOf(floor, floor, nest)]),
      rowOf(entry, floor, nest),
    ]),
    goals: pairs.filter(({ isPeer }) => isPeer !== true).flatMap((pair) => goalsOf(pair, nest)),
  }
}

function rowOf({ name, bytes, gzipBytes, lateBytes, cold, cached }: Contestant, floor: Contestant, nest: Contestant) {
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
    ratios(cpu(cold), cpu(nest.cold)).median,
    megabytes(spread(resident(cold)).median),
    ratios(resident(cold), resident(floor.cold)).median,
  ]
}

function goalsOf({ entry, floor }: Pair, nest: Contestant): Goal[] {
  const { name, bytes, gzipBytes, cold, cached } = entry
  const first = `${name}: CPU until the first answer`
  return [
    atMost(`${name}: KiB at first`, kib(bytes), 540),
    atMost(`${name}: KiB at first, gzip`, kib(gzipBytes), 170),
    atMost(`${name}: unwanted code at first`, unwantedIn(entry).length, 0),
    atMost(`${first}, × floor`, ratios(cpu(cold), cpu(floor.cold)).median, 1.3),
    atMost(`${first}, with a compile cache, × floor`, ratios(cpu(cached), cpu(floor.cold)).median, 1.12),
    atMost(`${first}, × nest`, ratios(cpu(cold), cpu(nest.cold)).median, 0.55),
    atMost(`${name}: memory at its first answer, × floor`, ratios(resident(cold), resident(floor.cold)).median, 1.1),
  ]
}
