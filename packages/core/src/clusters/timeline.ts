import { type TimelineEntry, timelineKinds } from '@platform/contract/timeline'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from './cluster.ts'
import * as keys from '../db/keys.ts'
import { type Item, query, queryAll, remove } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { idsBefore, timeOf } from '../id.ts'
import { type Page } from '../db/index-page.ts'
import { StoredActor } from '../outbox/record.ts'

/** How long timelines are kept. */
export const keepSeconds = 90 * 86_400
/** A timeline shows no more than this: reading a page costs a few calls, however much goes on. */
const rowsShown = 10_000

const Row = z.object({
  sk: z.string(),
  kind: z.enum(timelineKinds),
  title: z.string(),
  detail: z.string().optional(),
  resource: z.string().optional(),
  extra: z.literal(true).optional(),
  actor: StoredActor,
})
export type TimelineRecord = z.infer<typeof Row>

/** One page of what happened to a cluster, newest first. Two calls, and another one per further 1 MB of rows. */
export async function read({ organisationId }: Caller, clusterId: string, { page, pageSize }: Page) {
  if ((await Cluster.find(organisationId, clusterId)) === undefined) throw platformError('cluster_not_found')
  const rows = await shownRows(organisationId, clusterId)
  const items = rows.slice((page - 1) * pageSize, page * pageSize).map(viewOf)
  return { items, totalCount: rows.length, page, pageSize }
}

function shownRows(organisationId: string, clusterId: string): Promise<Item[]> {
  const { pk, sk: from } = keys.timeline(organisationId, clusterId, idsBefore('evt', now() - keepSeconds * 1000))
  return queryAll({ pk, from, newestFirst: true, stale: true }, rowsShown)
}

/** Removes rows of a cluster that is gone, a thousand at most; answers whether none are left. One call per 50. */
export async function purgeTimeline(organisationId: string, clusterId: string): Promise<boolean> {
  const { pk } = keys.timeline(organisationId, clusterId, '')
  for (let part = 0; part < 20; part++) {
    const { items } = await query({ pk, limit: 50 })
    if (items.length === 0) return true
    await transact(items.map(({ sk }) => remove({ pk, sk: String(sk) })))
  }
  return false
}

function viewOf(item: Item): TimelineEntry {
  const { sk: id, ...row } = Row.parse(item)
  return { id, at: iso(timeOf(id)), ...row }
}
