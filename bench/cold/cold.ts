import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atMost, type Effort, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import type { Tenant } from '../support/tenant.ts'
import { buildFloor, buildFunction, type BuiltBundle, unwantedIn } from './bundles.ts'
import { type FirstEvent, firstEvents } from './events.ts'

interface Contestant extends BuiltBundle {
  event: FirstEvent
  coldMs: number[]
  cachedMs: number[]
}

const driver = join(import.meta.dirname, 'driver.mjs')
const kib = (bytes: number): number => bytes / 1024

/** Every function as one file: how large it is, and how long a fresh process takes to its first answer. */
export async function measureColdStarts(tenant: Tenant, { isQuick }: Effort): Promise<Section> {
  const { clusters, relay, ...others } = await firstEvents(tenant)
  const reader = await enter(buildFloor('get-cluster'), clusters)
  const beater = await enter(buildFloor('heartbeat'), relay)
  const relays = await enter(buildFunction('relay'), relay)
  const all = Object.entries({ clusters, ...others })
  const functions = await Promise.all(all.map(([name, event]) => enter(buildFunction(name), event)))
  await race([reader, beater, relays, ...functions], isQuick ? 3 : 12)
  return section([
    { floor: beater, functions: [relays] },
    { floor: reader, functions },
  ])
}

const enter = async (bundle: Promise<BuiltBundle>, event: FirstEvent): Promise<Contestant> => ({
  ...(await bundle),
  event,
  coldMs: [],
  cachedMs: [],
})

/** Starts them all in random order, round by round; the round before the first fills the caches of files and code. */
async function race(contestants: readonly Contestant[], rounds: number): Promise<void> {
  const cache = await mkdtemp(join(tmpdir(), 'platform-bench-'))
  try {
    for (const round of range(rounds + 1)) {
      for (const contestant of shuffled(contestants)) {
        const coldMs = await firstAnswerMs(contestant, {})
        const cachedMs = await firstAnswerMs(contestant, { NODE_COMPILE_CACHE: cache })
        if (round === 0) continue
        contestant.coldMs.push(coldMs)
        contestant.cachedMs.push(cachedMs)
      }
    }
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
}

async function firstAnswerMs({ name, path, event }: Contestant, environment: Record<string, string>): Promise<number> {
  const text = JSON.stringify(await event())
  const startedAtMs = performance.now()
  const child = spawn(process.execPath, [driver, path, text], {
    env: { ...process.env, PLAT_LOG_LEVEL: 'info', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    const [, status] = /\nanswered (\d+)\n/.exec(chunk) ?? []
    if (status === undefined) continue
    const elapsedMs = performance.now() - startedAtMs
    // 403: setup is complete, which the store has told.
    if (Number(status) >= 300 && status !== '403') throw new Error(`${name} answered ${status} at first.`)
    await exit
    return elapsedMs
  }
  throw new Error(`${name} answered nothing.`)
}

interface Heat {
  floor: Contestant
  functions: readonly Contestant[]
}

function section(heats: readonly Heat[]): Section {
  const rows = heats.flatMap(({ floor, functions }) => [floor, ...functions].map((each) => rowOf(each, floor)))
  return {
    title: 'Functions as they are shipped, and their first answer',
    notes: [
      `Time from the start of a process to its first answer, its first calls of the store included. The floors are bare handlers that make the same first calls with the raw SDK client, bundled as anybody would, the SDK's credential chain and all; functions below a floor are compared with it. ${heats[0]?.floor.coldMs.length} rounds in random order; a ratio compares within one round. "Cached" is with NODE_COMPILE_CACHE, against the floor without.`,
    ],
    columns: ['function', 'KiB', 'KiB gzip', 'ms', 'ratio, median', 'min', 'max', 'cached ms', 'cached ratio'],
    rows,
    goals: heats.flatMap(({ floor, functions }) => functions.flatMap((each) => goalsOf(each, floor))),
  }
}

function rowOf({ name, bytes, gzipBytes, coldMs, cachedMs }: Contestant, floor: Contestant) {
  const { median, min, max } = ratios(coldMs, floor.coldMs)
  const cached = ratios(cachedMs, floor.coldMs).median
  return [name, kib(bytes), kib(gzipBytes), spread(coldMs).median, median, min, max, spread(cachedMs).median, cached]
}

/** Runs once a deployment, and makes many calls one after another. */
const answersNobody = new Set(['bootstrap'])

const goalsOf = (each: Contestant, floor: Contestant) => [
  atMost(`${each.name}: KiB of the bundle`, kib(each.bytes), 540),
  atMost(`${each.name}: KiB of the bundle, gzip`, kib(each.gzipBytes), 170),
  atMost(`${each.name}: unwanted code in the bundle`, unwantedIn(each).length, 0),
  ...(answersNobody.has(each.name)
    ? []
    : [atMost(`${each.name}: time to the first answer, × floor`, ratios(each.coldMs, floor.coldMs).median, 1.3)]),
]
