import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../conformance/support/answer.ts'
import { waitFor } from '../support/wait-for.ts'
import type { StoreFaults as FaultSettings } from '../support/emulators/store-faults.ts'
import type { PlatformProcess } from '../support/platform.ts'
import { outcomeOf } from './load/kept.ts'
import { type MixedLoad, startMixedLoad } from './load/mixed.ts'
import { all, atMost, type Effort, type Figure, none, type Part } from './part.ts'
import { type Heaps, heapsOf, inspected } from './soak/collections.ts'
import { fillCaches } from './soak/fill.ts'
import { unexplained, unhandled } from './soak/log.ts'
import { growthOf, type Memory, memoryOf, type Vitals, vitalsOf } from './soak/vitals.ts'
import { scan } from './scan.ts'
import { storeFaultsOf } from './support/emulators.ts'

const weather: Partial<FaultSettings> = {
  throttleRate: 0.05,
  lostAcknowledgementRate: 0.01,
  hangRate: 0.002,
  unprocessedRate: 0.05,
  transactionConflictRate: 0.02,
}

/** Ten minutes are judged, after those in which what is loaded, compiled and taken from the system on demand comes: ever less of it. */
const [warmUpMinutes, judgedMinutes] = [10, 10]

/** What an idle process may have open after its first load beyond before: threads and connections come when they are needed. */
const idleDifference = 32

async function prove(effort: Effort): Promise<Figure[]> {
  const { isShort, seed, say } = effort
  const [customers, restMs] = isShort ? [2, 0] : [4, 400]
  await using load = await startMixedLoad({ customers, seed, restMs, settings: inspected })
  using heaps = await heapsOf(load.platform)
  if (!isShort) await Promise.all([load.begin()(), fillCaches(load.platform)])
  const before = await vitalsOf(load.platform)
  const faults = await storeFaultsOf(load.platform)
  await faults.set({ ...weather, seed })
  const end = load.begin()
  const seen = await watch(load, heaps, isShort ? 3 : (warmUpMinutes + judgedMinutes) * 60, say)
  await end()
  await faults.clear()
  const { promised, lost, duplicates } = await outcomeOf(load)
  const left = await leftOver(load, before)
  const [strange, escaped] = [unexplained(load.platform.text), unhandled(load.platform.text)]
  const { tally } = load
  const wrong = [...tally.faults, ...tally.violations, ...tally.surprises, ...tally.givenUp]
  for (const line of [...wrong, ...lost, ...duplicates, ...left.lines, ...strange, ...escaped].slice(0, 30))
    say(line.slice(0, 600))
  return [
    ...(isShort ? [] : growth(seen)),
    none('calls that went wrong', wrong.length, `${tally.calls}`),
    none('promises that were lost, and things done twice', lost.length + duplicates.length, `${promised}`),
    none('rejections that nobody handled', escaped.length),
    none(
      'lines of errors in the log that no fault explains',
      strange.length,
      `${load.platform.text.split('\n').length}`,
    ),
    ...left.figures,
  ]
}

interface Look extends Vitals {
  /** Since the load began. */
  atMinutes: number
  /** Every half minute: a collection of all that runs takes a moment of each thread. */
  memory?: Memory
}

/** Looks at the process every five seconds. */
async function watch({ platform, tally }: MixedLoad, heaps: Heaps, seconds: number, say: Effort['say']) {
  const seen: Look[] = []
  const startMs = performance.now()
  while (performance.now() < startMs + seconds * 1000) {
    await delay(Math.min(5000, seconds * 1000))
    const look: Look = { atMinutes: (performance.now() - startMs) / 60_000, ...(await vitalsOf(platform)) }
    seen.push(look)
    if (seen.length % 6 !== 1) continue
    look.memory = await memoryOf(platform, heaps)
    const { descriptors, loopLagMs } = look
    const [resident, heap, lag] = [look.memory.residentMB, look.memory.heapMB, loopLagMs].map((value) =>
      value.toFixed(0),
    )
    say(`${tally.calls} calls; ${resident} MB, heaps ${heap} MB, ${descriptors} descriptors, loop ${lag} ms late`)
  }
  return seen
}

function growth(seen: readonly Look[]): Figure[] {
  const warm = seen.filter(({ atMinutes }) => atMinutes >= warmUpMinutes)
  const kept = warm.flatMap(({ atMinutes, memory }) => (memory === undefined ? [] : [{ atMinutes, ...memory }]))
  const grown = (value: keyof Memory) => growthOf(kept.map((at) => [at.atMinutes, at[value]]))
  const last = (value: keyof Memory) => kept.at(-1)?.[value].toFixed(0)
  const perMinute = ' MB a minute'
  return [
    atMost(`growth of what is in use on all heaps, of ${last('heapMB')} MB`, grown('heapMB'), 1, perMinute),
    atMost(`growth of the memory that is resident, of ${last('residentMB')} MB`, grown('residentMB'), 1, perMinute),
    atMost(
      'growth of open files and sockets',
      growthOf(warm.map(({ atMinutes, descriptors }) => [atMinutes, descriptors])),
      1,
      ' a minute',
    ),
    atMost(
      'how late the event loop is at most, of 99 in 100',
      Math.max(...warm.map(({ loopLagMs }) => loopLagMs)),
      250,
      ' ms',
    ),
  ]
}

/** What is held, leased or open when nothing is under way any more. */
async function leftOver(load: MixedLoad, before: Vitals): Promise<{ figures: Figure[]; lines: string[] }> {
  const { platform, api, relay, targets } = load
  const admin = await api.admin
  await relay.kill()
  const countOf = async (status: string) =>
    expectStatus(await admin.get(`/api/v1/jobs?status=${status}`), 200).totalCount
  const active = (await countOf('Running')) + (await countOf('Queued'))
  const removed = await removable(load, [targets.workingId, targets.parkedId])
  const vitals = () => vitalsOf(platform)
  const isIdle = ({ descriptors, heldRequests }: Vitals) =>
    heldRequests === 0 && descriptors - before.descriptors <= idleDifference
  const settled = await waitFor('the process is idle', async () => isIdle(await vitals()), 90).then(
    () => true,
    () => false,
  )
  const after = await vitals()
  const stuck = await waitingFor(platform, 120)
  return {
    lines: [
      ...(settled ? [] : [`idle: ${JSON.stringify(before)}, then ${JSON.stringify(after)}`]),
      ...[...stuck.values()].map((record) => `waits in the outbox: ${JSON.stringify(record)}`),
    ],
    figures: [
      none('leases: jobs that are queued or run', active),
      all('leases: clusters that can be removed, as no job counts as active there', removed, 2),
      none('holds: requests that are held', after.heldRequests),
      none('records that still wait in the outbox', stuck.size),
      atMost(
        'files and sockets beyond those of the start',
        Math.max(0, after.descriptors - before.descriptors),
        idleDifference,
      ),
    ],
  }
}

async function removable({ api }: MixedLoad, clusterIds: readonly string[]): Promise<number> {
  const admin = await api.admin
  const statuses = clusterIds.map(async (id) => (await admin.delete(`/api/v1/clusters/${id}`)).status)
  return (await Promise.all(statuses)).filter((status) => status === 204).length
}

/** The records that wait now and still do after so long: what happens meanwhile by itself may leave others. */
async function waitingFor(platform: PlatformProcess, seconds: number): Promise<Map<string, unknown>> {
  let left = await waiting(platform)
  const gone = async () => {
    const still = await waiting(platform)
    left = new Map([...left].filter(([key]) => still.has(key)))
    return left.size === 0
  }
  await waitFor('nothing waits in the outbox', gone, seconds).catch(() => undefined)
  return left
}

async function waiting(platform: PlatformProcess): Promise<Map<string, unknown>> {
  const rows = (await scan(platform)).filter(({ pk }) => pk?.S?.endsWith('#OUTBOX'))
  return new Map(rows.map((row) => [`${row['pk']?.S} ${row['sk']?.S}`, row]))
}

export const part: Part = {
  title: 'Ten minutes of everything',
  how:
    'The load of the hostile store, with faults all along, against one real platform process whose store is full enough for its caches. ' +
    'Memory is what is left when the garbage of every thread has been collected, each half minute, after ten minutes of the same load; ' +
    'growth is from the median of the first third of the looks to that of the last. Then everything is left alone, and nothing may be ' +
    'held, leased or open that was not at the start.',
  run: prove,
}
