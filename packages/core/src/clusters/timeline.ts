import { type TimelineEntry, timelineKinds } from '@platform/contract/timeline'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { query, queryAll, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { lowestIdAt, timeMsOf } from '../id.ts'
import { StoredActor } from '../outbox/record.ts'

/** The stored entries of the timeline of a cluster. Those of jobs derive from the jobs (see jobs/cluster-timeline.ts). */

export const retentionSeconds = 90 * 86_400
/** Only the newest entries are shown, up to this number, which limits the cost of a page. */
export const entryLimit = 10_000

const TimelineRecord = z.object({
  sk: z.string(),
  kind: z.enum(timelineKinds),
  title: z.string(),
  detail: z.string().optional(),
  resource: z.string().optional(),
  extra: z.literal(true).optional(),
  actor: StoredActor,
})
export type TimelineRecord = z.infer<typeof TimelineRecord>

const Earlier = z.array(TimelineRecord)

export const oldestEntryMs = (): number => now() - retentionSeconds * 1000

/** Returns the newest entries, in any order. */
export async function storedEntries(organisationId: string, clusterId: string): Promise<TimelineEntry[]> {
  const { pk, sk: from } = keys.timeline(organisationId, clusterId, lowestIdAt('evt', oldestEntryMs()))
  const items = await queryAll({ pk, from, isNewestFirst: true, mayBeStale: true }, entryLimit)
  const records = items.flatMap(({ earlier, ...newest }) => [
    TimelineRecord.parse(newest),
    ...(typeof earlier === 'string' ? Earlier.parse(JSON.parse(earlier)) : []),
  ])
  return [...new Map(records.map((record) => [record.sk, viewOf(record)])).values()]
}

/** Deletes at most 1,000 items. Returns false if others may remain. */
export async function purgeTimeline(organisationId: string, clusterId: string): Promise<boolean> {
  const { pk } = keys.timeline(organisationId, clusterId, '')
  for (let round = 0; round < 20; round++) {
    const { items } = await query({ pk, limit: 50 })
    if (items.length === 0) return true
    await transact(items.map(({ sk }) => remove({ pk, sk: String(sk) })))
  }
  return false
}

const viewOf = ({ sk: id, ...record }: TimelineRecord): TimelineEntry => ({ id, at: iso(timeMsOf(id)), ...record })
