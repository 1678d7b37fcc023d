import {
  type ClusterDetail,
  type ClusterRegistration,
  type ClusterUpdate,
  type RegisteredCluster,
} from '@platform/contract/cluster'
import { isUsedByOpenBatch, parseRemovalGuard, countRemovalWrite } from './removal-guard.ts'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { clustersOf } from './list.ts'
import {
  type ClusterRecord,
  statusIndexKeys,
  parseCluster,
  currentStatus,
  summary,
  statusCountWrite,
} from './record.ts'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import { type Condition, unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, get, getConsistent, orThrow, patch, remove as removal, type WriteItem, upsert } from '../db/table.ts'
import { createEnrollmentToken } from './enrollment-token.ts'
import { platformError } from '../error.ts'
import { isId, newId, timeOf } from '../id.ts'
import { parseNodes } from './node.ts'
import {
  insertWrite,
  removeWrite,
  type ListHead,
  nextSortTimeMs,
  parseHead,
  retryOnConflict,
} from '../db/offset-list.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { nodeStatus, relayStatus } from './status.ts'

export { list } from './list.ts'

/** Finds a cluster of the caller's organisation. One call. */
export async function find(
  organisationId: string,
  clusterId: string,
  options: { stale?: boolean } = {},
): Promise<ClusterRecord | undefined> {
  if (!isId('clus', clusterId)) return undefined
  const item = await get(keys.cluster(organisationId, clusterId), options)
  return item && parseCluster(item)
}

/** Registers a cluster as Pending, with an enrollment token. Two calls without collisions. */
export async function register(caller: Caller, request: ClusterRegistration): Promise<RegisteredCluster> {
  checkSiteId(request.siteId)
  return retryOnConflict(() => tryRegister(caller, request))
}

async function tryRegister(
  caller: Caller,
  { name, type, siteId }: ClusterRegistration,
): Promise<RegisteredCluster | undefined> {
  const { organisationId } = caller
  const clusters = clustersOf(organisationId)
  // The enrollment token outlives the caller's access token.
  const [, headItem] = await reauthorize(caller, ['clusters:write'], [clusters.head])
  const head = parseHead(headItem)
  const timeMs = nextSortTimeMs(head)
  const id = newId('clus', timeMs)
  const enrollment = createEnrollmentToken(organisationId, id)
  const counters = { activeJobs: 0, waitingJobs: 0 }
  const row = { id, name, type, siteId, enrollmentId: enrollment.id, ...counters }
  const filed = { ...row, ...statusIndexKeys({ organisationId, type }, 'Pending') }
  const answer: RegisteredCluster = {
    id,
    name,
    type,
    status: 'Pending',
    registeredAt: iso(timeMs),
    ...enrollment.shown,
  }

  const writes = [
    orThrow(create(keys.clusterName(organisationId, name), { clusterId: id }), 'cluster_name_taken'),
    insertWrite(clusters, head, timeMs),
    create(keys.cluster(organisationId, id), filed),
    statusCountWrite({ organisationId, type }, undefined, 'Pending'),
    enrollment.step,
    ...siteSteps(organisationId, siteId),
  ]
  const refusal = await commit(caller, {
    writes,
    answer,
    audit: { action: 'cluster.register', resource: id, detail: name },
    events: [{ name: 'cluster.registered', subject: id, data: { clusterId: id, name, type } }],
  })
  return refusal === undefined ? answer : undefined
}

/** Reject malformed site ids before building a key. */
function checkSiteId(siteId: string | null | undefined): void {
  if (typeof siteId === 'string' && !isId('site', siteId)) throw platformError('unknown_site')
}

/** Sites count their clusters, so that a site with clusters cannot be removed. */
const siteSteps = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined
    ? []
    : [orThrow(patch(keys.site(organisationId, siteId), { add: { clusters: 1 } }), 'unknown_site')]

const leaveSiteSteps = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined ? [] : [upsert(keys.site(organisationId, siteId), { add: { clusters: -1 } })]

/** One cluster with its nodes and relay. One call. */
export async function read({ organisationId }: Caller, clusterId: string): Promise<ClusterDetail> {
  const item = isId('clus', clusterId)
    ? await getConsistent([keys.cluster(organisationId, clusterId), keys.nodes(organisationId, clusterId)])
    : []
  if (item[0] === undefined) throw platformError('cluster_not_found')
  const row = parseCluster(item[0])
  const status = currentStatus(row)
  return {
    ...summary(row),
    nodes: parseNodes(item[1]).map((node) => ({ ...node, status: nodeStatus(node.status, status) })),
    relay:
      row.relayId === undefined
        ? null
        : {
            id: row.relayId,
            displayName: row.relayName,
            status: relayStatus(row, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS),
            lastHeartbeatAt: iso(row.lastSeenAtMs),
          },
  }
}

/** Renames a cluster or moves it to a site. Three calls. */
export async function update(caller: Caller, clusterId: string, change: ClusterUpdate): Promise<ClusterDetail> {
  const { organisationId } = caller
  const row = await find(organisationId, clusterId)
  if (row === undefined) throw platformError('cluster_not_found')
  const name = change.name ?? row.name
  checkSiteId(change.siteId)
  const siteId = change.siteId === undefined ? row.siteId : (change.siteId ?? undefined)
  const asRead: Condition = {
    name: { is: row.name },
    siteId: unchanged(row.siteId),
  }
  const changed = { set: { name, siteId }, remove: siteId === undefined ? ['siteId'] : [] }
  await commit(caller, {
    writes: [
      orThrow(patch(keys.cluster(organisationId, clusterId), changed, asRead), 'conflict'),
      ...renameSteps(row, name),
      ...(siteId === row.siteId ? [] : moveSteps(row, siteId)),
    ],
    audit: { action: 'cluster.update', resource: clusterId, detail: name },
    events: [{ name: 'cluster.updated', subject: clusterId, data: { clusterId, name, siteId: siteId ?? null } }],
  })
  return read(caller, clusterId)
}

function renameSteps(row: ClusterRecord, name: string): WriteItem[] {
  const [from, to] = [keys.clusterName(row.organisationId, row.name), keys.clusterName(row.organisationId, name)]
  if (from.pk === to.pk) return []
  return [
    orThrow(create(to, { clusterId: row.id }), 'cluster_name_taken'),
    orThrow(removal(from, { clusterId: { is: row.id } }), 'conflict'),
  ]
}

const moveSteps = (row: ClusterRecord, siteId: string | undefined): WriteItem[] => [
  ...siteSteps(row.organisationId, siteId),
  ...leaveSiteSteps(row.organisationId, row.siteId),
]

/**
 * Removes a cluster and its data; the sweep purges its ended jobs. Fails while a job is Queued or Running, or accepted
 * with a batch that is not counted yet. Three calls without collisions, one more while batches are open.
 */
export async function remove(caller: Caller, clusterId: string): Promise<void> {
  await retryOnConflict(() => tryRemove(caller, clusterId))
}

async function tryRemove(caller: Caller, clusterId: string): Promise<true | undefined> {
  const { organisationId } = caller
  const row = await find(organisationId, clusterId)
  if (row === undefined) throw platformError('cluster_not_found')
  if (row.activeJobs > 0) throw platformError('cluster_has_active_jobs')
  const [head, item] = await getConsistent([keys.clusterOffsets(organisationId), keys.removalGuard(organisationId)])
  const gate = parseRemovalGuard(item)
  if (await isUsedByOpenBatch(organisationId, gate, clusterId)) throw platformError('cluster_has_active_jobs')
  const refusal = await commit(caller, {
    writes: [...removalSteps(row, parseHead(head)), countRemovalWrite(organisationId, gate)],
    audit: { action: 'cluster.delete', resource: clusterId, detail: row.name },
    events: [{ name: 'cluster.deleted', subject: clusterId, data: { clusterId, name: row.name } }],
  })
  return refusal === undefined ? true : undefined
}

function removalSteps(row: ClusterRecord, head: ListHead) {
  const { organisationId, id } = row
  const asRead: Condition = {
    activeJobs: { is: 0 },
    name: { is: row.name },
    status: { is: row.status },
    enrollmentId: unchanged(row.enrollmentId),
    siteId: unchanged(row.siteId),
  }
  return [
    removal(keys.cluster(organisationId, id), asRead),
    removal(keys.clusterName(organisationId, row.name)),
    removal(keys.nodes(organisationId, id)),
    removeWrite(clustersOf(organisationId), head, timeOf(id)),
    statusCountWrite(row, row.status, undefined),
    ...leaveSiteSteps(organisationId, row.siteId),
    ...(row.enrollmentId === undefined ? [] : [removal(keys.enrollment(row.enrollmentId))]),
    ...(row.relayId === undefined ? [] : [removal(keys.relay(row.relayId))]),
    create(keys.clusterPurge(id), { organisationId, clusterId: id, removedAtMs: now(), ...keys.due(id, now()) }),
  ]
}
