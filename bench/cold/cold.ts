import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { startLambda } from '@platform/local/lambda/start'
import { functionNames } from '../../packages/local/src/function-files.ts'
import { atMost, type Effort, type Goal, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { buildFloor, buildFunction, type BuiltBundle, unwantedIn } from './bundles.ts'
import { type FirstEvent, firstEvents } from './events.ts'
import { clientsOf, floorName, floorProgram } from './floors.ts'
import { type Start, startOnce } from './start.ts'
import { coldColumns, coldTitle } from './table.ts'

interface Contestant extends BuiltBundle {
  event: FirstEvent
  cold: Start[]
  cached: Start[]
}

/** A function, and the bare handler that it is compared with. */
interface Pair {
  entry: Contestant
  floor: Contestant
}

const functionsDir = join(import.meta.dirname, '../../functions')
const assetsDir = join(import.meta.dirname, '../../dist')
const kib = (bytes: number): number => bytes / 1024

/** Every function as it is deployed: how large it is, and how long a fresh process takes to its first answer. */
export async function measureColdStarts(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const events = await firstEvents(tenant)
  const forgotten = (await functionNames(functionsDir)).filter((name) => !(name in events))
  if (forgotten.length > 0) throw new Error(`No first event for ${forgotten.join(', ')}.`)
  const pairs = await pair(events)
  const lambda = await startLambda()
  try {
    const contestants = new Set(pairs.flatMap(({ entry, floor }) => [floor, entry]))
    await buildAssets(assetsDir, { wants: ['portal.pack'] })
    const environment = {
      ...onAws,
      PLAT_ASSETS_DIR: assetsDir,
      PLAT_RELEASE_SOURCE: emptyRepository(),
      AWS_ENDPOINT_URL_LAMBDA: lambda.url,
    }
    await race([...contestants], environment, isQuick ? 2 : 12)
  } finally {
    await lambda.close()
  }
  return section(pairs)
}

/** What functions are told on AWS, beside what the bench tells them all. */
const onAws = {
  PLAT_MODULE_RUNTIME: 'lambda',
  PLAT_MODULE_REGISTRY: 'ecr',
  PLAT_MODULE_REPOSITORY: '123456789012.dkr.ecr.eu-central-1.amazonaws.com/platform',
  PLAT_UPDATE_TARGET: 'lambda-alias',
}

/** Where nobody has published a release: whoever looks for one asks the registry once. */
const emptyRepository = (): string => `${process.env['PLAT_REGISTRY_ALLOW']}/platform/releases`

/** Every function with its floor; functions that have the same clients have the same one. */
async function pair(events: Record<string, FirstEvent>): Promise<Pair[]> {
  const floors = new Map<string, Promise<Contestant>>()
  const pairs: Pair[] = []
  for (const [name, event] of Object.entries(events)) {
    const entry = enter(await buildFunction(name), event)
    // What a relay sends has to be answered by who knows relays.
    const handler = name === 'relay' ? 'heartbeat' : 'get-cluster'
    const clients = clientsOf(name, entry.sources)
    const title = floorName(handler, clients)
    const first = events[name === 'relay' ? 'relay' : 'clusters'] ?? event
    const floor = floors.get(title) ?? buildFloor(title, floorProgram(handler, clients)).then((it) => enter(it, first))
    floors.set(title, floor)
    pairs.push({ entry, floor: await floor })
  }
  return pairs.toSorted((one, other) => (one.floor.name < other.floor.name ? -1 : 1))
}

const enter = (bundle: BuiltBundle, event: FirstEvent): Contestant => ({ ...bundle, event, cold: [], cached: [] })

/** Starts them all in random order, round by round; the round before the first fills the caches of files and code. */
async function race(
  contestants: readonly Contestant[],
  environment: Record<string, string>,
  rounds: number,
): Promise<void> {
  const cache = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  try {
    for (const round of range(rounds + 1)) {
      for (const contestant of shuffled(contestants)) {
        const cold = await startOnce(contestant, environment)
        const cached = await startOnce(contestant, { ...environment, NODE_COMPILE_CACHE: cache })
        if (round === 0) continue
        contestant.cold.push(cold)
        contestant.cached.push(cached)
      }
    }
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}

const wall = (starts: readonly Start[]): number[] => starts.map(({ wallMs }) => wallMs)
const cpu = (starts: readonly Start[]): number[] => starts.map(({ cpuMs }) => cpuMs)

function section(pairs: readonly Pair[]): Section {
  const [first] = pairs
  return {
    title: coldTitle,
    notes: [
      `From the start of a process to its first answer, its first calls of the store included, with the settings of a deployment on AWS. A floor is a bare handler that makes its first calls with the raw SDK clients that the functions below it have as well, bundled as anybody would, the SDK's credential chain and all. ${first?.floor.cold.length ?? 0} rounds in random order; a ratio compares within one round. The goal is for CPU time, which a busy machine blurs less; min and max are of its ratio. KiB is what a process loads before it can answer, late what it loads when something needs it. "Cached" is the CPU ratio with NODE_COMPILE_CACHE, against the floor without.`,
    ],
    columns: coldColumns,
    rows: pairs.flatMap(({ entry, floor }, index) => [
      ...(pairs[index - 1]?.floor === floor ? [] : [rowOf(floor, floor)]),
      rowOf(entry, floor),
    ]),
    goals: pairs.flatMap(goalsOf),
  }
}

function rowOf({ name, bytes, gzipBytes, lateBytes, cold, cached }: Contestant, floor: Contestant) {
  const slowdown = ratios(wall(cold), wall(floor.cold)).median
  const { median, min, max } = ratios(cpu(cold), cpu(floor.cold))
  const cachedRatio = ratios(cpu(cached), cpu(floor.cold)).median
  const [ms, cpuMs] = [spread(wall(cold)).median, spread(cpu(cold)).median]
  return [name, kib(bytes), kib(gzipBytes), kib(lateBytes), ms, slowdown, cpuMs, median, min, max, cachedRatio]
}

function goalsOf({ entry, floor }: Pair): Goal[] {
  const { name, bytes, gzipBytes } = entry
  return [
    atMost(`${name}: KiB at first`, kib(bytes), 540),
    atMost(`${name}: KiB at first, gzip`, kib(gzipBytes), 170),
    atMost(`${name}: unwanted code at first`, unwantedIn(entry).length, 0),
    atMost(`${name}: CPU until the first answer, × floor`, ratios(cpu(entry.cold), cpu(floor.cold)).median, 1.3),
  ]
}
