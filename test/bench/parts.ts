import { measureAccept } from './batch/accept.ts'
import { measureDrain } from './batch/drain.ts'
import { measureExpansion } from './batch/expansion.ts'
import { measureLimits } from './batch/limits.ts'
import { jobsInBatch } from './batch/submissions.ts'
import { measureColdStarts } from './cold/cold.ts'
import { measureModules } from './modules/modules.ts'
import { measureLatency } from './one-machine/latency.ts'
import { measureStart } from './one-machine/start.ts'
import { measureThroughput } from './one-machine/throughput.ts'
import { countOperations } from './operations/counts.ts'
import { measureIdleHour } from './operations/idle-hour.ts'
import { countOthers } from './operations/others.ts'
import { measureShare } from './operations/peers.ts'
import { measureRatios } from './operations/ratios.ts'
import { measureSweeps } from './operations/sweeps.ts'
import { countVerifies } from './operations/verifies.ts'
import { type Feed, writeFeed } from './paging/feed.ts'
import { writeFleet } from './paging/fleet.ts'
import { measureGrowth } from './paging/growth.ts'
import { writeHistory } from './paging/history.ts'
import { measureLists } from './paging/lists.ts'
import { measurePages } from './paging/pages.ts'
import { buildPeers, peerNames } from './support/peers.ts'
import type { Effort, Section } from './support/section.ts'
import { newClusters, type Tenant } from './support/tenant.ts'
import type { World } from './support/world.ts'

/** What the parts of one run share. */
export interface Context {
  world: World
  tenant: Tenant
  effort: Effort
  /** Two users with notifications. */
  feeds: () => Promise<Feed[]>
}

const fleetSize = 100_000
const historySize = { jobs: 100_000, entries: 20_000 }
/** How many notifications two users have. */
const feedSizes = [50, 2000]

export function newContext(world: World, tenant: Tenant, effort: Effort): Context {
  let feeds: Promise<Feed[]> | undefined
  const write = () => Promise.all(feedSizes.map((count) => writeFeed(world.environment, count)))
  return { world, tenant, effort, feeds: () => (feeds ??= write()) }
}

/** Part → its sections, in the order in which they run. */
export const parts: Readonly<Record<string, (scene: Context) => AsyncGenerator<Section>>> = {
  counts: async function* ({ tenant }) {
    yield await countOperations(tenant)
    yield await countOthers()
    yield await measureIdleHour(tenant)
    yield await measureSweeps()
    yield await countVerifies()
  },
  // Before there are jobs that a sweep must look at.
  cold: async function* ({ tenant, effort }) {
    yield await measureColdStarts(tenant, effort)
  },
  cpu: async function* ({ tenant, effort, feeds }) {
    await buildPeers()
    yield* measureRatios(tenant, await feeds(), effort)
    yield await measureShare(tenant, effort)
  },
  batch: async function* ({ world, tenant, effort }) {
    const clusterIds = await newClusters(tenant.accessToken, jobsInBatch)
    yield await measureExpansion(tenant, clusterIds)
    yield await measureAccept(world, tenant, clusterIds, effort)
    yield await measureLimits(tenant, clusterIds, effort)
  },
  paging: async function* ({ world, effort, feeds }) {
    if (effort.isQuick) return
    const fleet = await writeFleet(world.environment, fleetSize)
    yield await measurePages(fleet)
    yield await measureGrowth(world, fleet)
    yield await measureLists(await writeHistory(world.environment, historySize), await feeds())
  },
  start: async function* ({ effort }) {
    yield await measureStart(effort)
  },
  http: async function* ({ effort }) {
    if (peerNames.length === 0) return
    await buildPeers()
    yield await measureThroughput(effort)
  },
  drain: async function* ({ effort }) {
    yield await measureDrain(effort)
  },
  latency: async function* ({ effort }) {
    if (peerNames.length === 0) return
    yield await measureLatency(effort)
  },
  modules: ({ tenant, effort }) => measureModules(tenant, effort),
}
