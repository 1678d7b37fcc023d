import type { ClusterDetail, ClusterRegistration, ClusterUpdate, RegisteredCluster } from '@platform/contract/cluster'
import type { Permission } from '@platform/contract/permission'
import { observe } from './downtime.ts'
import { endedJobCounts } from './counters.ts'
import { hiddenWrites, removedWrite } from './removed.ts'
import { isUsedByOpenBatch, parseRemovalGuard, countRemovalWrite } from './removal-guard.ts'
import { wakeRelay } from '../aws/wake-relay.ts'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { clustersOf } from './list.ts'
import {
  type ClusterRecord,
  relayIdsOf,
  statusIndexKeys,
  parseCluster,
  countedPresence,
  currentStatus,
  intervals,
  summary,
  statusCountWrite,
  nameAttributes,
} from './record.ts'
import { iso, now } from '../clock.ts'
import { type Condition, unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import {
  create,
  get,
  getConsistent,
  type Item,
  orThrow,
  patch,
  remove as removal,
  type WriteItem,
  upsert,
} from '../db/table.ts'
import { createEnrollmentToken } from './enrollment-token.ts'
import { changeLabelsWrite, createLabelsWrite, describeLabelChange, parseLabels } from '../labels/labels.ts'
import { platformError } from '../error.ts'
import { isId, newId, timeMsOf } from '../id.ts'
import { parseFacts } from './facts.ts'
import { nodesView } from './node.ts'
import {
  insertWrite,
  removeWrite,
  type ListHead,
  nextSortTimeMs,
  parseHead,
  retryOnConflict,
} from '../db/offset-list.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { checkQuota } from '../accounts/quota.ts'
import { isChannelOpen, relayStatus } from './status.ts'

export { list } from './list.ts'

export async function find(
  organisationId: string,
  clusterId: string,
  options: { mayBeStale?: boolean } = {},
): Promise<ClusterRecord | undefined> {
  if (!isId('clus', clusterId)) return undefined
  const item = await get(keys.cluster(organisationId, clusterId), options)
  return item && parseCluster(item)
}

export async function register(caller: Caller, request: ClusterRegistration): Promise<RegisteredCluster> {
  checkSiteId(request.siteId)
  return retryOnConflict(() => tryRegister(caller, request))
}

async function tryRegister(
  caller: Caller,
  { name, type, siteId, labels = {} }: ClusterRegistration,
): Promise<RegisteredCluster | undefined> {
  const { organisationId } = caller
  const clusters = clustersOf(organisationId)
  // The rights must be current, because the enrollment token outlives the caller's access token.
  const itemKeys = [clusters.head, keys.platform(), keys.organisation(organisationId)]
  const [, headItem, platform, organisation] = await reauthorize(caller, ['clusters:write'], itemKeys)
  const head = parseHead(headItem)
  checkQuota(organisation, 'clusters', head.total)
  const timeMs = nextSortTimeMs(head)
  const id = newId('clus', timeMs)
  const enrollment = createEnrollmentToken(caller, id, platform)
  const counters = { activeJobs: 0, waitingJobs: 0 }
  const record = { id, name, type, siteId, enrollmentId: enrollment.id, ...counters }
  const item = { ...record, ...statusIndexKeys({ organisationId, type }, 'Pending') }
  const response: RegisteredCluster = {
    id,
    name,
    type,
    status: 'Pending',
    registeredAt: iso(timeMs),
    ...enrollment.view,
  }

  const writes = [
    orThrow(create(keys.clusterName(organisationId, name), nameAttributes(id, name)), 'cluster_name_taken'),
    insertWrite(clusters, head, timeMs),
    create(keys.cluster(organisationId, id), item),
    createLabelsWrite({ organisationId, id, type, siteId }, labels),
    statusCountWrite({ organisationId, type }, undefined, 'Pending'),
    enrollment.write,
    ...joinSiteWrites(organisationId, siteId),
  ]
  const failure = await commit(caller, {
    writes,
    response,
    audit: { action: 'cluster.register', resource: id, detail: name },
    events: [{ name: 'cluster.registered', subject: id, data: { clusterId: id, name, type } }],
  })
  return failure === undefined ? response : undefined
}

/** Rejects malformed site ids before they become part of a key. */
function checkSiteId(siteId: string | null | undefined): void {
  if (typeof siteId === 'string' && !isId('site', siteId)) throw platformError('unknown_site')
}

/** The counter prevents the removal of a site with clusters. */
export const joinSiteWrites = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined
    ? []
    : [orThrow(patch(keys.site(organisationId, siteId), { add: { clusters: 1 } }), 'unknown_site')]

const leaveSiteWrites = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined ? [] : [upsert(keys.site(organisationId, siteId), { add: { clusters: -1 } })]

export async function read({ organisationId }: Caller, clusterId: string): Promise<ClusterDetail> {
  const items = isId('clus', clusterId)
    ? await getConsistent([
        keys.cluster(organisationId, clusterId),
        keys.nodes(organisationId, clusterId),
        keys.sweepState(),
        keys.clusterLabels(organisationId, clusterId),
      ])
    : []
  if (items[0] === undefined) throw platformError('cluster_not_found')
  observe(items[2])
  const record = parseCluster(items[0])
  const status = currentStatus(record)
  const { relayVersion } = parseFacts(items[1])
  return {
    ...summary(record, parseLabels(items[3])),
    nodes: nodesView(items[1], status),
    relay:
      record.relayId === undefined
        ? null
        : {
            id: record.relayId,
            displayName: record.relayName,
            status: relayStatus(countedPresence(record), now()),
            lastHeartbeatAt: iso(Math.min(record.lastSeenAtMs, now())),
            ...(relayVersion !== undefined && { version: relayVersion }),
            channel: isChannelOpen(record, intervals) ? ('open' as const) : ('none' as const),
            ...(record.scriptsIsolated !== undefined && { scriptsIsolated: record.scriptsIsolated }),
          },
  }
}

export async function update(caller: Caller, clusterId: string, change: ClusterUpdate): Promise<ClusterDetail> {
  checkSiteId(change.siteId)
  await retryOnConflict(() => tryUpdate(caller, clusterId, change))
  return read(caller, clusterId)
}

async function tryUpdate(caller: Caller, clusterId: string, change: ClusterUpdate): Promise<true | undefined> {
  const { record, labelsItem } = await authorizedCluster(caller, clusterId, 'clusters:write')
  const name = change.name ?? record.name
  const siteId = change.siteId === undefined ? record.siteId : (change.siteId ?? undefined)
  const { labels, ...fields } = change
  const isRecordChanged = labels === undefined || Object.keys(fields).length > 0
  const site = siteId === record.siteId ? undefined : { id: siteId }
  const labelsWrite = changeLabelsWrite(record, labelsItem, { labels, site })
  if (!isRecordChanged && labelsWrite === undefined) return true
  const failure = await commit(caller, {
    writes: [
      ...(isRecordChanged ? changeWrites(record, { name, siteId }) : []),
      ...(labelsWrite === undefined ? [] : [labelsWrite]),
    ],
    audit: {
      action: 'cluster.update',
      resource: clusterId,
      detail: labels === undefined ? name : `${name}: labels ${describeLabelChange(labels)}`,
    },
    events: [{ name: 'cluster.updated', subject: clusterId, data: { clusterId, name, siteId: siteId ?? null } }],
  })
  return failure === undefined ? true : undefined
}

function changeWrites(record: ClusterRecord, { name, siteId }: { name: string; siteId: string | undefined }) {
  const condition: Condition = { name: { is: record.name }, siteId: unchangedCondition(record.siteId) }
  const fields = { set: { name, siteId }, remove: siteId === undefined ? ['siteId'] : [] }
  return [
    orThrow(patch(keys.cluster(record.organisationId, record.id), fields, condition), 'conflict'),
    ...renameWrites(record, name),
    ...(siteId === record.siteId ? [] : changeSiteWrites(record, siteId)),
  ]
}

async function authorizedCluster(
  caller: Caller,
  clusterId: string,
  permission: Permission,
): Promise<{ record: ClusterRecord; labelsItem: Item }> {
  if (!isId('clus', clusterId)) throw platformError('cluster_not_found')
  const itemKeys = [
    keys.cluster(caller.organisationId, clusterId),
    keys.clusterLabels(caller.organisationId, clusterId),
  ]
  const [, item, labelsItem] = await reauthorize(caller, [permission], itemKeys)
  if (item === undefined || labelsItem === undefined) throw platformError('cluster_not_found')
  return { record: parseCluster(item), labelsItem }
}

function renameWrites({ organisationId, id, name: oldName }: ClusterRecord, name: string): WriteItem[] {
  const [from, to] = [keys.clusterName(organisationId, oldName), keys.clusterName(organisationId, name)]
  if (from.sk === to.sk) return []
  return [
    orThrow(create(to, nameAttributes(id, name)), 'cluster_name_taken'),
    orThrow(removal(from, { clusterId: { is: id } }), 'conflict'),
  ]
}

const changeSiteWrites = (record: ClusterRecord, siteId: string | undefined): WriteItem[] => [
  ...joinSiteWrites(record.organisationId, siteId),
  ...leaveSiteWrites(record.organisationId, record.siteId),
]

/**
 * Longer than the timeout of functions that expand batches: an invocation that is still storing jobs
 * (`jobs/batches/expand.ts`) could otherwise store the record of a purged job again.
 */
const purgeDelayMs = 45_000

/**
 * Removes a cluster and hides its finished jobs, which the sweep purges. Throws `cluster_has_active_jobs` while Queued
 * or Running jobs exist, including jobs of batches that are not yet expanded.
 */
export async function remove(caller: Caller, clusterId: string): Promise<void> {
  await retryOnConflict(() => tryRemove(caller, clusterId))
  // The relay learns from its next heartbeat that it is revoked.
  await wakeRelay(clusterId)
}

async function tryRemove(caller: Caller, clusterId: string): Promise<true | undefined> {
  const { organisationId } = caller
  const { record, labelsItem } = await authorizedCluster(caller, clusterId, 'clusters:admin')
  if (record.activeJobs > 0) throw platformError('cluster_has_active_jobs')
  const [head, item] = await getConsistent([keys.clusterOffsets(organisationId), keys.removalGuard(organisationId)])
  const guard = parseRemovalGuard(item)
  if (await isUsedByOpenBatch(organisationId, guard, clusterId)) throw platformError('cluster_has_active_jobs')
  const failure = await commit(caller, {
    writes: [...removalWrites(record, parseHead(head)), countRemovalWrite(organisationId, guard)],
    audit: { action: 'cluster.delete', resource: clusterId, detail: record.name },
    // Webhooks with a selector need the labels, which are removed.
    events: [
      {
        name: 'cluster.deleted',
        subject: clusterId,
        data: { clusterId, name: record.name, labels: parseLabels(labelsItem) },
      },
    ],
  })
  return failure === undefined ? true : undefined
}

function removalWrites(record: ClusterRecord, head: ListHead) {
  const { organisationId, id } = record
  const condition: Condition = {
    activeJobs: { is: 0 },
    jobs: unchangedCondition(record.jobs || undefined),
    name: { is: record.name },
    status: { is: record.status },
    enrollmentId: unchangedCondition(record.enrollmentId),
    pendingRelayId: unchangedCondition(record.pendingRelayId),
    siteId: unchangedCondition(record.siteId),
  }
  return [
    removal(keys.cluster(organisationId, id), condition),
    removal(keys.clusterName(organisationId, record.name)),
    removal(keys.nodes(organisationId, id)),
    removal(keys.clusterLabels(organisationId, id)),
    removeWrite(clustersOf(organisationId), head, timeMsOf(id)),
    statusCountWrite(record, record.status, undefined),
    ...leaveSiteWrites(organisationId, record.siteId),
    removedWrite(organisationId, id),
    ...hiddenWrites(organisationId, endedJobCounts(record)),
    ...(record.enrollmentId === undefined ? [] : [removal(keys.enrollment(record.enrollmentId))]),
    ...relayIdsOf(record).map((relayId) => removal(keys.relay(relayId))),
    create(keys.clusterPurge(id), {
      organisationId,
      clusterId: id,
      removedAtMs: now(),
      ...keys.dueIndexKeys(id, now() + purgeDelayMs),
    }),
  ]
}
