import * as z from 'zod'
import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { elapsedMs, isAhead, now } from '../clock.ts'
import { purgedWrites } from '../clusters/removed.ts'
import { purgeTimeline } from '../clusters/timeline.ts'
import * as keys from '../db/keys.ts'
import { removeAll, transact } from '../db/transact.ts'
import { getConsistent, type Item, patch, query, remove } from '../db/table.ts'
import { forEachLimit } from '../lib/async.ts'
import { parseJob } from './record.ts'
import { transitionOf } from '../outbox/record.ts'

const PurgeMarker = z.object({ organisationId: z.string(), clusterId: z.string(), removedAtMs: z.number() })

/** Limits the time that a sweep spends on the jobs of one cluster. */
const purgeTimeMs = 5000
/** A cluster's jobs may appear in the index late, so a removed cluster is checked for at least this long. */
const indexLagMs = 60_000
const recordsPerTransaction = 50

const maxConcurrency = 10

/** The next sweep continues an interrupted purge. */
export async function purgeCluster(marker: Item): Promise<void> {
  const { organisationId, clusterId, removedAtMs } = PurgeMarker.parse(marker)
  const areJobsPurged = await purgeJobs(organisationId, clusterId, elapsedMs() + purgeTimeMs)
  const isPurged = (await purgeTimeline(organisationId, clusterId)) && areJobsPurged
  const isDone = isPurged && !isAhead(removedAtMs + indexLagMs, indexLagMs)
  const dueChange = { set: keys.dueIndexKeys(clusterId, now() + 1000) }
  await transact(isDone ? purgedWrites(organisationId, clusterId) : [patch(keys.clusterPurge(clusterId), dueChange)])
}

/** Returns false if the index still listed jobs. */
async function purgeJobs(organisationId: string, clusterId: string, untilMs: number): Promise<boolean> {
  let isEmpty = true
  let after: Item | undefined
  do {
    const range = { index: 'gsi1', pk: keys.clusterJobs(clusterId), limit: recordsPerTransaction } as const
    const { items, next } = await query({ ...range, ...(after && { after }) })
    isEmpty &&= items.length === 0
    await purge(
      organisationId,
      items.map(({ id }) => String(id)),
    )
    after = next
  } while (after !== undefined && elapsedMs() < untilMs)
  return isEmpty
}

/** Removes the record last, because the index lists a job until its record is removed. */
async function purge(organisationId: string, jobIds: readonly string[]): Promise<void> {
  await removeDetails(organisationId, jobIds)
  const items = await getConsistent(jobIds.map((id) => keys.job(organisationId, id)))
  const records = items.filter((item) => item !== undefined).map(parseJob)
  if (records.length === 0) return
  await commit(system(organisationId), {
    writes: records.map(({ id, status }) => remove(keys.job(organisationId, id), { status: { is: status } })),
    transitions: records.map((record) => transitionOf(record, record.status, undefined)),
  })
}

/** Removes the payloads, results and output of the jobs. */
export async function removeDetails(organisationId: string, jobIds: readonly string[]): Promise<void> {
  await forEachLimit(maxConcurrency, jobIds, (id) => removeAll(keys.jobDetails(organisationId, id)))
}
