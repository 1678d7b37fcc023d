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
 * How a cluster is stored. The row holds its relay's presence, so that a beat is one write and a page one query; what its
 * keys say already it does not repeat, because every page reads every byte.
 */
const StoredCluster = z.object({
  pk: z.string(),
  id: z.string(),
  name: z.string(),
  type: z.enum(clusterTypes),
  siteId: z.string().optional(),
  /** The status that indexes and tallies know: the last one that a beat or the sweep has persisted. */
  status: z.enum(clusterStatuses),
  /** The unused enrollment token, if there is one. */
  enrollmentId: z.string().optional(),
  relayId: z.string().optional(),
  relayName: z.string().default(''),
  lastSeenAtMs: z.number().default(0),
  isSteady: z.boolean().default(true),
  saidGoodbye: z.boolean().default(false),
  nodeCount: z.number().default(0),
  nodesOnline: z.number().default(0),
  /** Tells whether a beat reports anything new about nodes. */
  nodesHash: z.string().default(''),
  /** Set afresh by every beat: two at once cannot both be written, and each can tell its own write. */
  beatNonce: z.string().default(''),
  /** Request tokens of recent beats, so that none works twice. */
  recentTokens: z.string().default('0'),
  duesk: z.string().optional(),
  /** Jobs that are Queued or Running (D30). */
  activeJobs: z.number().default(0),
  /** Jobs in the inbox. */
  waitingJobs: z.number().default(0),
  /** Jobs that it ever had: they stay as long as the cluster does. */
  jobs: z.number().default(0),
})

/** A cluster as its row and its keys tell. `dueAtMs` is 0 while the sweep has no reason to look at it. */
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

/** A cluster's status now. */
export const currentStatus = (row: ClusterRecord): ClusterStatus =>
  clusterStatus(row, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)

/** The wire form of a row. */
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

/** The name of a tally of clusters. */
export const statusCountName = (type: string, status: string): string => `${type}#${status}`

/** How many clusters of each status a stored item tallies. */
export function countByStatus(item: Item | undefined): ClusterCounts {
  const of = (status: ClusterStatus): number =>
    Math.max(
      0,
      clusterTypes.reduce((sum, type) => sum + Number(item?.[statusCountName(type, status)] ?? 0), 0),
    )
  return { Healthy: of('Healthy'), Degraded: of('Degraded'), Pending: of('Pending'), Offline: of('Offline') }
}

/**
 * The step that moves a cluster between tallies, in the transaction that changes its status. The revision tells which of two
 * looks at the tallies is the later one.
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

/** The event that a cluster's status has changed. */
export const statusEvent = (
  { id, name, status: previousStatus }: Pick<ClusterRecord, 'id' | 'name' | 'status'>,
  status: ClusterStatus,
) => ({
  name: 'cluster.status_changed' as const,
  subject: id,
  data: { clusterId: id, name, status, previousStatus },
})

/** Attributes that file a row under a status. */
export const statusIndexKeys = (row: Pick<ClusterRecord, 'organisationId' | 'type'>, status: ClusterStatus) => ({
  status,
  ...keys.clusterIndexKeys(row.organisationId, row.type, status),
})
