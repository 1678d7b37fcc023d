import { type ClusterStatus, type ClusterSummary, clusterStatuses, clusterTypes } from '@platform/contract/cluster'
import { type ClusterCounts } from '@platform/contract/portal'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { type Item, upsert } from '../db/table.ts'
import { timeOf } from '../id.ts'
import { clusterStatus } from './status.ts'

/**
 * The stored form of a cluster. The record includes its relay's presence, so that a heartbeat is one write and a page
 * one query. It repeats nothing that its keys contain, because pages read every byte.
 */
const StoredCluster = z.object({
  pk: z.string(),
  id: z.string(),
  name: z.string(),
  type: z.enum(clusterTypes),
  siteId: z.string().optional(),
  /** The status in indexes and counts: as last persisted by a heartbeat or the sweep. */
  status: z.enum(clusterStatuses),
  /** The unused enrollment token, if any. */
  enrollmentId: z.string().optional(),
  relayId: z.string().optional(),
  relayName: z.string().default(''),
  lastSeenAtMs: z.number().default(0),
  isSteady: z.boolean().default(true),
  saidGoodbye: z.boolean().default(false),
  nodeCount: z.number().default(0),
  nodesOnline: z.number().default(0),
  /** Detects whether a heartbeat changes the nodes. */
  nodesHash: z.string().default(''),
  /** New with every heartbeat: of concurrent ones only one is written, and each recognises its own write. */
  beatNonce: z.string().default(''),
  /** Request tokens of recent heartbeats, to reject replays. */
  recentTokens: z.string().default('0'),
  duesk: z.string().optional(),
  /** Queued or Running jobs. */
  activeJobs: z.number().default(0),
  /** Jobs in the inbox. */
  waitingJobs: z.number().default(0),
  /** All jobs: they are kept as long as the cluster. */
  jobs: z.number().default(0),
})

/** A cluster from its record and keys. `dueAtMs` is 0 if no check is scheduled. */
export function parseCluster(item: Item) {
  const { pk, duesk, ...row } = StoredCluster.parse(item)
  const facts = {
    organisationId: keys.organisationOf(pk),
    registeredAtMs: timeOf(row.id),
    dueAtMs: keys.dueTimeOf(duesk),
  }
  return { ...row, ...facts }
}
export type ClusterRecord = ReturnType<typeof parseCluster>

/** A cluster's current status. */
export const currentStatus = (row: ClusterRecord): ClusterStatus =>
  clusterStatus(row, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)

/** The API representation of a cluster. */
export const summary = (row: ClusterRecord): ClusterSummary => ({
  id: row.id,
  name: row.name,
  type: row.type,
  status: currentStatus(row),
  nodeCount: row.nodeCount,
  ...(row.siteId === undefined ? {} : { siteId: row.siteId }),
  registeredAt: iso(row.registeredAtMs),
  lastSeenAt: row.lastSeenAtMs === 0 ? null : iso(row.lastSeenAtMs),
})

/** The name of a counter of clusters. */
export const statusCountName = (type: string, status: string): string => `${type}#${status}`

/** The number of clusters per status in a stored item. */
export function countByStatus(item: Item | undefined): ClusterCounts {
  const of = (status: ClusterStatus): number =>
    Math.max(
      0,
      clusterTypes.reduce((sum, type) => sum + Number(item?.[statusCountName(type, status)] ?? 0), 0),
    )
  return { Healthy: of('Healthy'), Degraded: of('Degraded'), Pending: of('Pending'), Offline: of('Offline') }
}

/**
 * Moves a cluster between status counts, in the transaction that changes its status. The revision orders concurrent
 * readings of the counts.
 */
export const statusCountWrite = (
  row: Pick<ClusterRecord, 'organisationId' | 'type'>,
  from: ClusterStatus | undefined,
  to: ClusterStatus | undefined,
) =>
  upsert(keys.clusterStatusCounts(row.organisationId), {
    add: {
      ...(from === undefined ? {} : { [statusCountName(row.type, from)]: -1 }),
      ...(to === undefined ? {} : { [statusCountName(row.type, to)]: 1 }),
      revision: 1,
    },
  })

/** The event for a changed cluster status. */
export const statusEvent = (
  { id, name, status: previousStatus }: Pick<ClusterRecord, 'id' | 'name' | 'status'>,
  status: ClusterStatus,
) => ({
  name: 'cluster.status_changed' as const,
  subject: id,
  data: { clusterId: id, name, status, previousStatus },
})

/** Index attributes of a record with this status. */
export const statusIndexKeys = (row: Pick<ClusterRecord, 'organisationId' | 'type'>, status: ClusterStatus) => ({
  status,
  ...keys.clusterIndexKeys(row.organisationId, row.type, status),
})
