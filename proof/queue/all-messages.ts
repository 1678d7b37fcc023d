import { setTimeout as delay } from 'node:timers/promises'
import { started } from '../../test/support/world.ts'
import { atLeast, type Effort, type Figure, none } from '../part.ts'
import { allRows } from '../support/rows.ts'
import { beHostile, type Consumers, startConsumers } from './consumers.ts'
import { type Drift, driftOf } from './drift.ts'
import { ask, type Load, newTenant, relay, type Tenant } from './tenant.ts'

/** So many organisations, and what each of them does. */
const whole = { consumers: 2, tenants: 8, load: { clusters: 3, jobs: 1000, batches: 4, jobsInBatch: 100, notes: 500 } }
const short = { consumers: 1, tenants: 1, load: { clusters: 1, jobs: 30, batches: 2, jobsInBatch: 10, notes: 5 } }

/** Without anything arriving for so long the rest never will. */
const patienceMs = 180_000

export async function runMessages({ isShort, seed, say }: Effort): Promise<Figure[]> {
  const { consumers: processes, tenants: count, load } = isShort ? short : whole
  await started()
  const tenants: Tenant[] = []
  while (tenants.length < count) tenants.push(await newTenant(load.clusters))
  await beHostile(seed)
  await using consumers = startConsumers(processes, seed)
  await live(tenants, load, consumers, say)
  await consumers.idle()
  say('All queues are empty; what stands in the table is counted.')
  const rows = await allRows()
  const drifts = await Promise.all(tenants.map((tenant) => driftOf(tenant, rows)))
  const { jobs, batches, events, failed, again, twice } = await consumers.handled()
  const messages = jobs + batches + events
  return [
    atLeast(
      `messages handled (${jobs} of jobs, ${batches} of batches, ${events} of events; ${again} were sent again after a success; ${failed} failed first)`,
      messages,
      isShort ? 100 : 50_000,
    ),
    // A fifth is handed out twice, half of these to the same of two processes.
    atLeast('of these, handed out by the queue a second time, after a success', twice, Math.floor(messages / 20)),
    ...driftFigures(drifts, rows),
  ]
}

/** All that is asked for is asked, and runs. */
async function live(tenants: readonly Tenant[], load: Load, consumers: Consumers, say: Effort['say']): Promise<void> {
  const ran = () => tenants.reduce((sum, { runs }) => sum + runs.size, 0)
  const toRun = () => tenants.reduce((sum, tenant) => sum + tenant.toRun, 0)
  let [isAsked, isOver] = [false, false]
  const relays = tenants.flatMap((tenant) => tenant.worlds.map((world) => relay(tenant, world, () => isOver)))
  const watch = async () => {
    for (let [last, atMs, saidAtMs] = [0, performance.now(), 0]; !isOver; await delay(50)) {
      if (ran() > last) [last, atMs] = [ran(), performance.now()]
      isOver = isAsked && (ran() >= toRun() || performance.now() - atMs > patienceMs)
      if (performance.now() - saidAtMs < 20_000) continue
      saidAtMs = performance.now()
      const { jobs, batches, events } = await consumers.handled()
      say(`${ran()} jobs have run; ${jobs + batches + events} messages`)
    }
  }
  const asking = Promise.all(tenants.map((tenant) => ask(tenant, load))).then(() => (isAsked = true))
  await Promise.all([asking, watch(), ...relays])
}

const claims: readonly (readonly [keyof Drift, string])[] = [
  ['clusters', 'clusters whose counters (jobs, active, waiting) are not what is recounted'],
  ['runs', 'jobs that were dispatched twice, or never'],
  ['batches', 'batches that were not expanded once, or are counted otherwise than their jobs are'],
  ['totals', 'job totals that are not what is recounted'],
  ['history', 'counts of the history that are not what is recounted'],
  ['audit', 'audit entries missing or twice, and broken chains'],
  ['notifications', 'notifications missing or twice, and unread counts that are not what is recounted'],
  ['unbooked', 'records that were not booked'],
]

function driftFigures(drifts: readonly Drift[], rows: readonly { sk?: unknown; pk?: unknown }[]): Figure[] {
  const jobs = rows.filter(({ sk }) => sk === 'JOB').length
  const aside = rows.filter(({ pk }) => String(pk).startsWith('UNREADABLE#')).length
  const sums = claims.map(([name, claim]) =>
    none(
      claim,
      drifts.reduce((sum, drift) => sum + drift[name], 0),
    ),
  )
  return [...sums, none(`records that were set aside (${jobs} jobs)`, aside)]
}
