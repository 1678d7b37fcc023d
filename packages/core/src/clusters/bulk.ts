import {
  type BulkChangeResult,
  bulkChangeLimit,
  type BulkLabelChange,
  type BulkSiteChange,
} from '@platform/contract/cluster'
import type { LabelChange } from '@platform/contract/label'
import type { Target } from '@platform/contract/target'
import { reauthorize } from '../accounts/current-rights.ts'
import type { Caller } from '../caller.ts'
import { config } from '../config.ts'
import { countAllowedCall, perMinute } from '../db/call-limit.ts'
import { type Condition, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { getMany, type Item, orThrow, patch, upsert, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { isId } from '../id.ts'
import { changeLabelsWrite, describeLabelChange } from '../labels/labels.ts'
import { chunk } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import { type ClusterRecord, parseCluster } from './record.ts'
import { startOnTarget } from './target.ts'

/**
 * Changes many clusters in several transactions. A repeated request skips clusters that already have the new values, so
 * that it completes the change after a failure.
 */

interface BulkChange {
  action: 'cluster.label' | 'cluster.move'
  description: string
  /** A transaction has at most 100 writes, and an outbox record at most 400 KB. */
  clustersPerTransaction: number
  /** Returns undefined if the cluster does not change. */
  writesOf: (record: ClusterRecord, labels: Item) => WriteItem[] | undefined
  siteOf: (record: ClusterRecord) => string | undefined
  /** Further writes of a transaction that changes these clusters. */
  sharedWrites?: (records: readonly ClusterRecord[]) => WriteItem[]
}

export function labelClusters(
  caller: Caller,
  { target, set = {}, remove = [] }: BulkLabelChange,
): Promise<BulkChangeResult> {
  const labels: LabelChange = { ...set, ...Object.fromEntries(remove.map((key) => [key, null])) }
  return changeClusters(caller, target, {
    action: 'cluster.label',
    description: describeLabelChange(labels),
    clustersPerTransaction: 90,
    writesOf: (record, item) => {
      // Throws `limit_reached`, usually before any cluster is changed.
      const write = changeLabelsWrite(record, item, { labels })
      return write && [write]
    },
    siteOf: ({ siteId }) => siteId,
  })
}

export async function moveClusters(
  caller: Caller,
  { target, siteId: newSiteId }: BulkSiteChange,
): Promise<BulkChangeResult> {
  const siteId = newSiteId ?? undefined
  if (siteId !== undefined && !isId('site', siteId)) throw platformError('unknown_site')
  return changeClusters(caller, target, {
    action: 'cluster.move',
    description: siteId === undefined ? 'no site' : `to ${siteId}`,
    // Each cluster needs up to three writes: its record, its labels and the counter of its former site.
    clustersPerTransaction: 30,
    writesOf: (record, item) => (record.siteId === siteId ? undefined : moveWrites(record, item, siteId)),
    siteOf: () => siteId,
    sharedWrites: (records) => siteCountWrites(records, siteId),
  })
}

function moveWrites(record: ClusterRecord, labelsItem: Item, siteId: string | undefined): WriteItem[] {
  const { organisationId, id } = record
  const condition: Condition = { siteId: unchangedCondition(record.siteId) }
  const fields = siteId === undefined ? { remove: ['siteId'] } : { set: { siteId } }
  const labelsWrite = changeLabelsWrite(record, labelsItem, { site: { id: siteId } })
  return [patch(keys.cluster(organisationId, id), fields, condition), ...(labelsWrite ? [labelsWrite] : [])]
}

function siteCountWrites(records: readonly ClusterRecord[], siteId: string | undefined): WriteItem[] {
  const [organisationId = ''] = records.map((record) => record.organisationId)
  const joinWrite = siteId && patch(keys.site(organisationId, siteId), { add: { clusters: records.length } })
  const leaveWrites = [...Map.groupBy(records, (record) => record.siteId)].flatMap(([from, { length }]) =>
    from === undefined ? [] : [upsert(keys.site(organisationId, from), { add: { clusters: -length } })],
  )
  return [...(joinWrite ? [orThrow(joinWrite, 'unknown_site')] : []), ...leaveWrites]
}

async function changeClusters(caller: Caller, target: Target, change: BulkChange): Promise<BulkChangeResult> {
  await reauthorize(caller, ['clusters:write'])
  await countAllowedCall(perMinute(`labels:${caller.organisationId}`, config.PLAT_LIMIT_BATCH_PER_MINUTE))
  return startOnTarget(caller, { target, limit: bulkChangeLimit }, async (clusterIds) => {
    const changes = await changesOf(caller.organisationId, clusterIds, change)
    let changedCount = 0
    for (const part of chunk(changes, change.clustersPerTransaction))
      changedCount += await retryOnConflict(() => changePart(caller, part, change))
    return { resolvedCount: clusterIds.length, changedCount }
  })
}

interface ClusterChange {
  record: ClusterRecord
  writes: WriteItem[]
}

/** Skips clusters without a change, and clusters that were removed. */
async function changesOf(
  organisationId: string,
  clusterIds: readonly string[],
  { writesOf }: BulkChange,
): Promise<ClusterChange[]> {
  const [items, labelItems] = await Promise.all([
    getMany(clusterIds.map((id) => keys.cluster(organisationId, id))),
    getMany(clusterIds.map((id) => keys.clusterLabels(organisationId, id))),
  ])
  return items.flatMap((item, index) => {
    const labelsItem = labelItems[index]
    if (item === undefined || labelsItem === undefined) return []
    const record = parseCluster(item)
    const writes = writesOf(record, labelsItem)
    return writes === undefined ? [] : [{ record, writes }]
  })
}

/** Returns the number of changed clusters. After a conflict, reads `part` again and returns undefined. */
async function changePart(caller: Caller, part: ClusterChange[], change: BulkChange): Promise<number | undefined> {
  if (part.length === 0) return 0
  const records = part.map(({ record }) => record)
  await reauthorize(caller, ['clusters:write'])
  const failure = await commit(caller, {
    writes: [...(change.sharedWrites?.(records) ?? []), ...part.flatMap(({ writes }) => writes)],
    audit: {
      action: change.action,
      resource: caller.organisationId,
      detail: `${describeClusters(records)}: ${change.description}`,
    },
    events: records.map((record) => ({
      name: 'cluster.updated' as const,
      subject: record.id,
      data: { clusterId: record.id, name: record.name, siteId: change.siteOf(record) ?? null },
    })),
  })
  if (failure === undefined) return part.length
  const ids = records.map(({ id }) => id)
  part.splice(0, part.length, ...(await changesOf(caller.organisationId, ids, change)))
  return undefined
}

const maxShownNames = 5

function describeClusters(records: readonly ClusterRecord[]): string {
  const names = records.slice(0, maxShownNames).map(({ name }) => name)
  const otherCount = records.length - names.length
  const count = records.length === 1 ? '1 cluster' : `${records.length} clusters`
  return `${count} (${names.join(', ')}${otherCount > 0 ? ` and ${otherCount} more` : ''})`
}
