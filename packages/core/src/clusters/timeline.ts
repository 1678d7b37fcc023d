import { type TimelineEntry, timelineKinds } from '@platform/contract/timeline'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from './cluster.ts'
import * as keys from '../db/keys.ts'
import { type Item, query, queryAll, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { lowestIdAt, timeMsOf } from '../id.ts'
import { type Page, paged, pageOfItems, type PageQuery } from '../db/paging.ts'
import { StoredActor } from '../outbox/record.ts'

export const retentionSeconds = 90 * 86_400
/** Only the newest entries are shown, up to this number, which limits the cost of a page. */
const entryLimit = 10_000

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

export const read = (caller: Caller, clusterId: string, query: PageQuery) =>
  paged(['timeline', caller.organisationId, clusterId], query, (page) => readPage(caller, clusterId, page))

async function readPage({ organisationId }: Caller, clusterId: string, page: Page) {
  if ((await Cluster.find(organisationId, clusterId)) === undefined) throw platformError('cluster_not_found')
  const records = await visibleItems(organisationId, clusterId)
  const { items, ...rest } = pageOfItems(records, page, ({ sk }) => String(sk))
  return { items: items.map(viewOf), ...rest }
}

const Earlier = z.array(TimelineRecord)

async function visibleItems(organisationId: string, clusterId: string): Promise<Item[]> {
  const { pk, sk: from } = keys.timeline(organisationId, clusterId, lowestIdAt('evt', now() - retentionSeconds * 1000))
  const items = await queryAll({ pk, from, isNewestFirst: true, mayBeStale: true }, entryLimit)
  const entries = items.flatMap(({ earlier, ...newest }) => [
    newest,
    ...(typeof earlier === 'string' ? Earlier.parse(JSON.parse(earlier)) : []),
  ])
  const byId = new Map(entries.map((entry) => [String(entry.sk), entry]))
  return [...byId.values()].toSorted((one, other) => (String(one.sk) < String(other.sk) ? 1 : -1)).slice(0, entryLimit)
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

function viewOf(item: Item): TimelineEntry {
  const { sk: id, ...record } = TimelineRecord.parse(item)
  return { id, at: iso(timeMsOf(id)), ...record }
}
