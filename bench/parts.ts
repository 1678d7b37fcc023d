import { measureAccept } from './batch/accept.ts'
import { measureDrain } from './batch/drain.ts'
import { measureExpansion } from './batch/expansion.ts'
import { measureLimits } from './batch/limits.ts'
import { jobsInBatch } from './batch/submissions.ts'
import { measureColdStarts } from './cold/cold.ts'
import { measureModules } from './modules/modules.ts'
import { measureNeighbour } from './neighbour/neighbour.ts'
import { measureStart } from './one-machine/start.ts'
import { measureThroughput } from './one-machine/throughput.ts'
import { countOperations } from './operations/counts.ts'
import { measureIdleHour } from './operations/idle-hour.ts'
import { measureRatios } from './operations/ratios.ts'
import { measureSweeps } from './operations/sweeps.ts'
import { countVerifies } from './operations/verifies.ts'
import { writeFeed } from './paging/feed.ts'
import { writeFleet } from './paging/fleet.ts'
import { measureGrowth } from './paging/growth.ts'
import { writeHistory } from './paging/history.ts'
import { measureLists } from './paging/lists.ts'
import { measurePages } from './paging/pages.ts'
import { actionsSeen, metered } from './support/meter.ts'
import { complaint, keep, keepSome, printed } from './support/report.ts'
import { atMost, type Effort, type Goal, type Section } from './support/section.ts'
import { newClusters, setUp, type Tenant } from './support/tenant.ts'
import type { World } from './support/world.ts'

const fleetSize = 100_000
const historySize = { jobs: 100_000, entries: 20_000 }
/** How many notifications two users have. */
const feedSizes = [50, 2000]

/** Parts that can be measured by themselves. */
const parts: Record<string, typeof measureModules> = {
  modules: measureModules,
  cold: async function* (tenant, effort) {
    yield await measureColdStarts(tenant, effort)
  },
}

/** Runs everything, or one part of it, prints each table when it is there, and answers the exit code. */
export async function runParts(world: World, effort: Effort, only?: string): Promise<number> {
  const part = only === undefined ? undefined : parts[only]
  if (only !== undefined && part === undefined) throw new Error(`--only takes ${Object.keys(parts).join()}.`)
  const tenant = await setUp()
  const sections: Section[] = []
  for await (const section of part?.(tenant, effort) ?? measured(world, tenant, effort)) {
    console.log(printed(section))
    sections.push(section)
  }
  if (!effort.isQuick) await (part === undefined ? keep : keepSome)(sections)
  const goals: Goal[] = sections.flatMap((section) => section.goals)
  const missed = goals.filter((goal) => !goal.isMet && !('isHope' in goal))
  console.log(`\n${goals.length - missed.length} of ${goals.length} goals met.`)
  for (const goal of missed) console.log(complaint(goal))
  return missed.length > 0 ? 1 : 0
}

async function* measured(world: World, tenant: Tenant, effort: Effort): AsyncGenerator<Section> {
  yield await countOperations(tenant)
  yield await measureIdleHour(tenant)
  yield await measureSweeps()
  yield await countVerifies()
  // Before there are jobs that a sweep must look at.
  yield await measureColdStarts(tenant, effort)
  const feeds = await Promise.all(feedSizes.map((count) => writeFeed(world.environment, count)))
  yield await measureRatios(tenant, feeds, effort)
  const clusterIds = await newClusters(tenant.accessToken, jobsInBatch)
  yield await measureExpansion(tenant, clusterIds)
  yield await measureAccept(world, tenant, clusterIds, effort)
  yield await measureLimits(tenant, clusterIds, effort)
  if (!effort.isQuick) {
    const fleet = await writeFleet(world.environment, fleetSize)
    yield await measurePages(fleet)
    yield await measureGrowth(world, fleet)
    yield await measureLists(await writeHistory(world.environment, historySize), feeds)
  }
  yield await measureStart(effort)
  yield await measureThroughput(effort)
  yield await measureDrain(effort)
  yield await measureNeighbour(effort)
  yield* measureModules(tenant, effort)
  yield await scans()
}

/** Whatever ran before, no operation may walk the whole table. */
async function scans(): Promise<Section> {
  // Takes note of what came last.
  await metered(() => Promise.resolve())
  const seen = [...actionsSeen].toSorted()
  return {
    title: 'Actions of the store that were asked for',
    notes: ['By everything above, the floor included.'],
    columns: ['actions'],
    rows: seen.map((action) => [action]),
    goals: [atMost('scans', seen.filter((action) => action === 'Scan').length, 0)],
  }
}
