import {
  type ClusterDetail,
  type ClusterRegistration,
  type ClusterUpdate,
  type RegisteredCluster,
} from '@platform/contract/cluster'
import { type Caller } from './caller.ts'
import { ClusterHead } from './cluster-list.ts'
import { type ClusterRow, filedUnder, parseRow, statusNow, summary, tallyStep } from './cluster-row.ts'
import { iso, now } from './clock.ts'
import { config } from './config.ts'
import { type Condition, sameAs } from './db/expression.ts'
import * as keys from './db/keys.ts'
import { create, get, getAll, patch, pause, remove as removal, replace, transact, upsert } from './db/table.ts'
import { mintEnrollment } from './enrollment-token.ts'
import { type ErrorCode } from '@platform/contract/errors'
import { contended, fault } from './fault.ts'
import { isId, newId, timeOf } from './id.ts'
import { parseNodes } from './node.ts'
import { withoutRow, withRow } from './ranks.ts'
import { nodeStatus, relayStatus } from './status.ts'

export { list } from './cluster-list.ts'

/** Registrations of one organisation change its list's head one after another; this many may meet. */
const attempts = 20

/** Finds a cluster of the caller's organisation. One call. */
export async function find(
  organisationId: string,
  clusterId: string,
  options: { stale?: boolean } = {},
): Promise<ClusterRow | undefined> {
  if (!isId('clus', clusterId)) return undefined
  const item = await get(keys.cluster(organisationId, clusterId), options)
  return item && parseRow(item)
}

/** Registers a cluster: Pending, with an enrollment token. Two calls without collisions. */
export async function register(caller: Caller, request: ClusterRegistration): Promise<RegisteredCluster> {
  checkSiteId(request.siteId)
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await pause(attempt)
    const registered = await tryRegister(caller, request)
    if (registered !== undefined) return registered
  }
  throw contended()
}

async function tryRegister(
  { organisationId }: Caller,
  { name, type, siteId }: ClusterRegistration,
): Promise<RegisteredCluster | undefined> {
  const head = ClusterHead.parse((await get(keys.clusterRanks(organisationId))) ?? {})
  // Times within one list are distinct and ascend, whatever the clocks of different processes say.
  const timeMs = Math.max(now(), head.lastTimeMs + 1)
  const id = newId('clus', timeMs)
  const enrollment = mintEnrollment(organisationId, id)
  const counters = { activeJobs: 0, waitingJobs: 0 }
  const row = { id, name, type, siteId, enrollmentId: enrollment.id, ...counters }
  const filed = { ...row, ...filedUnder({ organisationId, type }, 'Pending') }

  const refusal = await transact([
    create(keys.clusterName(organisationId, name), { clusterId: id }),
    replaceHead(organisationId, head, {
      total: head.total + 1,
      ranks: withRow(head.ranks, timeMs),
      lastTimeMs: timeMs,
    }),
    create(keys.cluster(organisationId, id), filed),
    tallyStep({ organisationId, type }, undefined, 'Pending'),
    enrollment.step,
    ...siteSteps(organisationId, siteId),
  ])
  if (refusal?.step === 0) throw fault('cluster_name_taken')
  if (refusal?.step === 5) throw fault('unknown_site')
  if (refusal) return undefined
  return { id, name, type, status: 'Pending', registeredAt: iso(timeMs), ...enrollment.shown }
}

const replaceHead = (
  organisationId: string,
  head: { version: number },
  next: Omit<ReturnType<typeof ClusterHead.parse>, 'version'>,
) =>
  replace(
    keys.clusterRanks(organisationId),
    { ...next, version: head.version + 1 },
    head.version === 0 ? { pk: { absent: true } } : { version: { is: head.version } },
  )

/** Text that is no id names no site, and makes no key. */
function checkSiteId(siteId: string | null | undefined): void {
  if (typeof siteId === 'string' && !isId('site', siteId)) throw fault('unknown_site')
}

/** A site counts its clusters, so that it cannot vanish under one. */
const siteSteps = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined ? [] : [patch(keys.site(organisationId, siteId), { add: { clusters: 1 } })]

const leaveSiteSteps = (organisationId: string, siteId: string | undefined) =>
  siteId === undefined ? [] : [upsert(keys.site(organisationId, siteId), { add: { clusters: -1 } })]

/** One cluster with its nodes and relay. One call. */
export async function read({ organisationId }: Caller, clusterId: string): Promise<ClusterDetail> {
  const item = isId('clus', clusterId)
    ? await getAll([keys.cluster(organisationId, clusterId), keys.nodes(organisationId, clusterId)])
    : []
  if (item[0] === undefined) throw fault('cluster_not_found')
  const row = parseRow(item[0])
  const status = statusNow(row)
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
  if (row === undefined) throw fault('cluster_not_found')
  const name = change.name ?? row.name
  checkSiteId(change.siteId)
  const siteId = change.siteId === undefined ? row.siteId : (change.siteId ?? undefined)
  const asRead: Condition = {
    name: { is: row.name },
    siteId: sameAs(row.siteId),
  }
  const steps: [ReturnType<typeof patch>, ErrorCode][] = [
    [
      patch(
        keys.cluster(organisationId, clusterId),
        { set: { name, siteId }, remove: siteId === undefined ? ['siteId'] : [] },
        asRead,
      ),
      'conflict',
    ],
    ...renameSteps(row, name),
    ...(siteId === row.siteId ? [] : moveSteps(row, siteId)),
  ]
  const refusal = await transact(steps.map(([step]) => step))
  if (refusal) throw fault(steps[refusal.step]?.[1] ?? 'conflict')
  return read(caller, clusterId)
}

function renameSteps(row: ClusterRow, name: string): [ReturnType<typeof patch>, ErrorCode][] {
  const [from, to] = [keys.clusterName(row.organisationId, row.name), keys.clusterName(row.organisationId, name)]
  if (from.pk === to.pk) return []
  return [
    [create(to, { clusterId: row.id }), 'cluster_name_taken'],
    [removal(from, { clusterId: { is: row.id } }), 'conflict'],
  ]
}

const moveSteps = (row: ClusterRow, siteId: string | undefined): [ReturnType<typeof patch>, ErrorCode][] => [
  ...siteSteps(row.organisationId, siteId).map((step): [typeof step, ErrorCode] => [step, 'unknown_site']),
  ...leaveSiteSteps(row.organisationId, row.siteId).map((step): [typeof step, ErrorCode] => [step, 'conflict']),
]

/**
 * Removes a cluster and all that belongs to it; its ended jobs follow at the next sweep. Refused while a job is Queued
 * or Running, by the counter in the row itself (D30). Three calls without collisions.
 */
export async function remove({ organisationId }: Caller, clusterId: string): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const row = await find(organisationId, clusterId)
    if (row === undefined) throw fault('cluster_not_found')
    if (row.activeJobs > 0) throw fault('cluster_has_active_jobs')
    if (attempt > 0) await pause(attempt)
    const head = ClusterHead.parse((await get(keys.clusterRanks(organisationId))) ?? {})
    if (!(await transact(removalSteps(row, head)))) return
  }
  throw contended()
}

function removalSteps(row: ClusterRow, head: ReturnType<typeof ClusterHead.parse>) {
  const { organisationId, id } = row
  const asRead: Condition = {
    activeJobs: { is: 0 },
    name: { is: row.name },
    status: { is: row.status },
    enrollmentId: sameAs(row.enrollmentId),
    siteId: sameAs(row.siteId),
  }
  return [
    removal(keys.cluster(organisationId, id), asRead),
    removal(keys.clusterName(organisationId, row.name)),
    removal(keys.nodes(organisationId, id)),
    replaceHead(organisationId, head, { ...head, total: head.total - 1, ranks: withoutRow(head.ranks, timeOf(id)) }),
    tallyStep(row, row.status, undefined),
    ...leaveSiteSteps(organisationId, row.siteId),
    ...(row.enrollmentId === undefined ? [] : [removal(keys.enrollment(row.enrollmentId))]),
    ...(row.relayId === undefined ? [] : [removal(keys.relay(row.relayId))]),
    create(keys.removedCluster(id), { organisationId, clusterId: id, removedAtMs: now(), ...keys.due(id, now()) }),
  ]
}
