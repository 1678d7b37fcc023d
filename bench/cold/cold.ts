import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { functionNames } from '../../packages/local/src/function-files.ts'
import { atMost, type Effort, type Goal, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { buildFloor, buildFunction, type BuiltBundle, unwantedIn } from './bundles.ts'
import { type FirstEvent, firstEvents } from './events.ts'

interface Contestant extends BuiltBundle {
  event: FirstEvent
  cold: Start[]
  cached: Start[]
}

/** A process from its start to its first answer. */
interface Start {
  wallMs: number
  cpuMs: number
}

const functionsDir = join(import.meta.dirname, '../../functions')
const driver = join(import.meta.dirname, 'driver.mjs')
const kib = (bytes: number): number => bytes / 1024

/** Every function as one file: how large it is, and how long a fresh process takes to its first answer. */
export async function measureColdStarts(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const { relay, ...others } = await firstEvents(tenant)
  const reader = await enter(buildFloor('get-cluster'), others.clusters)
  const beater = await enter(buildFloor('heartbeat'), relay)
  const relays = await enter(buildFunction('relay'), relay)
  const forgotten = (await functionNames(functionsDir)).filter((name) => name !== 'relay' && !(name in others))
  if (forgotten.length > 0) throw new Error(`No first event for ${forgotten.join(', ')}.`)
  const functions = await Promise.all(Object.entries(others).map(([name, event]) => enter(buildFunction(name), event)))
  await race([reader, beater, relays, ...functions], isQuick ? 2 : 12)
  return section([
    { floor: beater, functions: [relays] },
    { floor: reader, functions },
  ])
}

const enter = async (bundle: Promise<BuiltBundle>, event: FirstEvent): Promise<Contestant> => ({
  ...(await bundle),
  event,
  cold: [],
  cached: [],
})

/** Starts them all in random order, round by round; the round before the first fills the caches of files and code. */
async function race(contestants: readonly Contestant[], rounds: number): Promise<void> {
  const cache = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  try {
    for (const round of range(rounds + 1)) {
      for (const contestant of shuffled(contestants)) {
        const cold = await start(contestant, {})
        const cached = await start(contestant, { NODE_COMPILE_CACHE: cache })
        if (round === 0) continue
        contestant.cold.push(cold)
        contestant.cached.push(cached)
      }
    }
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}

/** Refusals that are first answers all the same: that setup is complete, or that no module answers, the store has told. */
const refusals: Record<string, string> = { setup: '403', 'gateway/modules': '404' }

async function start({ name, path, event }: Contestant, environment: Record<string, string>): Promise<Start> {
  const text = JSON.stringify(await event())
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [driver, path, text], {
    env: { ...process.env, PLAT_LOG_LEVEL: 'info', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    const [, status, cpuMicroseconds] = /\nanswered (\d+) after (\d+) µs\n/.exec(chunk) ?? []
    if (status === undefined) continue
    const wallMs = performance.now() - startedAtMs
    if (Number(status) >= 300 && status !== refusals[name]) throw new Error(`${name} answered ${status} at first.`)
    await exit
    return { wallMs, cpuMs: Number(cpuMicroseconds) / 1000 }
  }
  throw new Error(`${name} answered nothing.`)
}

interface Heat {
  floor: Contestant
  functions: readonly Contestant[]
}

const wall = (starts: readonly Start[]): number[] => starts.map(({ wallMs }) => wallMs)
const cpu = (starts: readonly Start[]): number[] => starts.map(({ cpuMs }) => cpuMs)

function section(heats: readonly Heat[]): Section {
  return {
    title: 'Functions as they are shipped, and their first answer',
    notes: [
      `From the start of a process to its first answer, its first calls of the store included. The floors are bare handlers that make the same first calls with the raw SDK client, bundled as anybody would, the SDK's credential chain and all; functions below a floor are compared with it. ${heats[0]?.floor.cold.length} rounds in random order; a ratio compares within one round. The goal is for CPU time, which a busy machine blurs less. "Cached" is with NODE_COMPILE_CACHE, against the floor without.`,
    ],
    columns: ['function', 'KiB', 'KiB gzip', 'ms', 'ratio', 'CPU ms', 'CPU ratio', 'min', 'max', 'cached CPU ratio'],
    rows: heats.flatMap(({ floor, functions }) => [floor, ...functions].map((each) => rowOf(each, floor))),
    goals: heats.flatMap(({ floor, functions }) => functions.flatMap((each) => goalsOf(each, floor))),
  }
}

function rowOf({ name, bytes, gzipBytes, cold, cached }: Contestant, floor: Contestant) {
  const slowdown = ratios(wall(cold), wall(floor.cold)).median
  const { median, min, max } = ratios(cpu(cold), cpu(floor.cold))
  const cachedRatio = ratios(cpu(cached), cpu(floor.cold)).median
  const [ms, cpuMs] = [spread(wall(cold)).median, spread(cpu(cold)).median]
  return [name, kib(bytes), kib(gzipBytes), ms, slowdown, cpuMs, median, min, max, cachedRatio]
}

/** Runs once a deployment, and makes many calls one after another. */
const answersNobody = new Set(['bootstrap'])

function goalsOf(each: Contestant, floor: Contestant): Goal[] {
  const slowdown = ratios(cpu(each.cold), cpu(floor.cold)).median
  const start = atMost(`${each.name}: CPU until the first answer, × floor`, slowdown, 1.3)
  return [
    atMost(`${each.name}: KiB of the bundle`, kib(each.bytes), 540),
    atMost(`${each.name}: KiB of the bundle, gzip`, kib(each.gzipBytes), 170),
    atMost(`${each.name}: unwanted code in the bundle`, unwantedIn(each).length, 0),
    ...(answersNobody.has(each.name) ? [] : [start]),
  ]
}
