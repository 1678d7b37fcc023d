import * as z from 'zod'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, patch, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { purgeJobs } from './purge.ts'
import { purgeTimeline as clearTimeline } from '../clusters/timeline.ts'

const Removed = z.object({ organisationId: z.string(), clusterId: z.string(), removedAtMs: z.number() })

/** Time per sweep for purging jobs; the next sweep continues. */
const clearForMs = 5000

/** Indexes lag: a removed cluster is checked until it shows no jobs for this long. */
const watchForMs = 60_000

/** Purges the ended jobs and the timeline of a removed cluster for some seconds, and finally the purge marker. */
export async function purgeCluster(marker: Item): Promise<void> {
  const { organisationId, clusterId, removedAtMs } = Removed.parse(marker)
  const areJobsClear = await purgeJobs(organisationId, clusterId, now() + clearForMs)
  const isClear = (await clearTimeline(organisationId, clusterId)) && areJobsClear
  const isDone = isClear && removedAtMs + watchForMs <= now()
  const key = keys.clusterPurge(clusterId)
  await transact([isDone ? remove(key) : patch(key, { set: keys.due(clusterId, now() + 1000) })])
}
