import { type AssignedLabels, type LabelAssignment, labellingLimit } from '@platform/contract/cluster'
import { type LabelChange } from '@platform/contract/label'
import { reauthorize } from '../accounts/current-rights.ts'
import { type Caller } from '../caller.ts'
import { config } from '../config.ts'
import { countAllowedCall, perMinute } from '../db/call-limit.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { getMany, type WriteItem } from '../db/table.ts'
import { chunk } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import { changeLabelsWrite, describeLabels } from '../labels/labels.ts'
import { parseCluster } from './record.ts'
import { withTarget } from './target.ts'

/** A transaction has at most 100 writes, and an outbox record at most 400 KB. */
const clustersPerTransaction = 90

/** Repeatable: clusters that already have the labels are not changed. */
export async function labelMany(
  caller: Caller,
  { target, set = {}, remove = [] }: LabelAssignment,
): Promise<AssignedLabels> {
  const change: LabelChange = { ...set, ...Object.fromEntries(remove.map((key) => [key, null])) }
  await reauthorize(caller, ['clusters:write'])
  await countAllowedCall(perMinute(`labels:${caller.organisationId}`, config.PLAT_LIMIT_BATCH_PER_MINUTE))
  return withTarget(caller, { target, limit: labellingLimit }, async (clusterIds) => {
    // Throws `limit_reached` before anything is changed.
    const changed = await changesOf(caller.organisationId, clusterIds, change)
    let changedCount = 0
    for (const part of chunk(changed, clustersPerTransaction))
      changedCount += await retryOnConflict(() => labelPart(caller, part, change))
    return { resolvedCount: clusterIds.length, changedCount }
  })
}

interface ClusterChange {
  clusterId: string
  name: string
  siteId: string | null
  write: WriteItem
}

/** Skips clusters without a change, and clusters that were removed. */
async function changesOf(
  organisationId: string,
  clusterIds: readonly string[],
  change: LabelChange,
): Promise<ClusterChange[]> {
  const [items, labelItems] = await Promise.all([
    getMany(clusterIds.map((id) => keys.cluster(organisationId, id))),
    getMany(clusterIds.map((id) => keys.clusterLabels(organisationId, id))),
  ])
  return clusterIds.flatMap((clusterId, index) => {
    const [item, labelsItem] = [items[index], labelItems[index]]
    if (item === undefined || labelsItem === undefined) return []
    const record = parseCluster(item)
    const write = changeLabelsWrite(record, labelsItem, { labels: change })
    return write === undefined ? [] : [{ clusterId, name: record.name, siteId: record.siteId ?? null, write }]
  })
}

/** Returns the number of changed clusters, or undefined after a conflict; the clusters are then read again. */
async function labelPart(caller: Caller, part: ClusterChange[], change: LabelChange): Promise<number | undefined> {
  if (part.length === 0) return 0
  await reauthorize(caller, ['clusters:write'])
  const failure = await commit(caller, {
    writes: part.map(({ write }) => write),
    audit: {
      action: 'cluster.label',
      resource: caller.organisationId,
      detail: `${part.length} clusters: ${describeLabels(change)}`,
    },
    events: part.map(({ clusterId, name, siteId }) => ({
      name: 'cluster.updated' as const,
      subject: clusterId,
      data: { clusterId, name, siteId },
    })),
  })
  if (failure === undefined) return part.length
  const ids = part.map(({ clusterId }) => clusterId)
  part.splice(0, part.length, ...(await changesOf(caller.organisationId, ids, change)))
  return undefined
}
