import { type ClusterStatus, type ClusterSummary, clusterStatuses, clusterTypes } from '@platform/contract/cluster'
import type { Labels } from '@platform/contract/label'
import type { ClusterCounts } from '@platform/contract/portal'
import * as z from 'zod'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { type Item, upsert } from '../db/table.ts'
import { timeMsOf } from '../id.ts'
import { runningSinceMs } from './downtime.ts'
import { clusterStatus, type Intervals, isChannelOpen, withoutDowntime } from './status.ts'

/**
 * Includes the relay's last heartbeat, so that lists need no further read for the status. The id of the organisation is
 * read from the key, because every stored byte adds to the cost of a page.
 */
const StoredCluster = z.object({
  pk: z.string(),
  id: z.string(),
  name: z.string(),
  type: z.enum(clusterTypes),
  siteId: z.string().optional(),
  /** The last stored status, which indexes and counts use. `currentStatus` returns the current one. */
  status: z.enum(clusterStatuses),
  enrollmentId: z.string().optional(),
  relayId: z.string().optional(),
  /** A relay that waits for approval. It may send heartbeats, and `relayId` is absent. */
  pendingRelayId: z.string().optional(),
  relayName: z.string().default(''),
  lastSeenAtMs: z.number().default(0),
  isSteady: z.boolean().default(true),
  saidGoodbye: z.boolean().default(false),
  nodeCount: z.number().default(0),
  nodesOnline: z.number().default(0),
  /** Shows whether a heartbeat changes the nodes. */
  nodesHash: z.string().default(''),
  factsHash: z.string().optional(),
  /**
   * New with every heartbeat. Only one of several concurrent heartbeats is written, and each can recognise its own
   * write.
   */
  beatNonce: z.string().default(''),
  /** Request tokens of recent heartbeats, to reject replays. */
  recentTokens: z.string().default('0'),
  /** As the relay reported; absent before the first report. */
  scriptsIsolated: z.boolean().optional(),
  /** The id of the relay process that sent the last heartbeat. Every start of a relay uses a new id. */
  instanceId: z.string().optional(),
  /** Earlier instances of the same relay and the times of their replacement, newest first: `id@ms,id@ms`. */
  formerInstances: z.string().default(''),
  duplicateReportedAtMs: z.number().default(0),
  /**
   * The newest control channel that the broker reported, and its times; `channelClosedAtMs` is absent while it is open.
   */
  channelId: z.string().optional(),
  channelOpenedAtMs: z.number().optional(),
  channelClosedAtMs: z.number().optional(),
  /** The relay update that offers a version to the relay; see `relays/update-offer.ts`. */
  relayUpdateId: z.string().optional(),
  relayOffer: z.string().optional(),
  relayUpdateResult: z.string().optional(),
  relayUpdateProblem: z.string().optional(),
  duesk: z.string().optional(),
  /** Number of Queued and Running jobs, and of ended jobs whose end is not recorded yet. */
  activeJobs: z.number().default(0),
  /** Number of items in the inbox. */
  waitingJobs: z.number().default(0),
  /** Single jobs that wait without an item in the inbox, and claimed jobs that are not reported as running yet. */
  listedJobs: z.set(z.string()).default(() => new Set<string>()),
  /** Jobs of batches that wait or run, or whose end is not recorded yet. */
  listedBatchJobs: z.set(z.string()).default(() => new Set<string>()),
  /** Number of jobs, including finished ones. */
  jobs: z.number().default(0),
  /** The id of the job that was stored last, without its prefix. */
  lastJob: z.string().optional(),
  jobsCompleted: z.number().default(0),
  jobsFailed: z.number().default(0),
  jobsCancelled: z.number().default(0),
})

/** Attributes of a reserved name. `folded` repeats the sort key, because filters cannot read keys. */
export const nameAttributes = (clusterId: string, name: string) => ({ clusterId, folded: keys.fold(name) })

/** `dueAtMs` is 0 if no check is scheduled. */
export function parseCluster(item: Item) {
  const { pk, duesk, ...record } = StoredCluster.parse(item)
  return {
    ...record,
    organisationId: keys.organisationOf(pk),
    registeredAtMs: timeMsOf(record.id),
    dueAtMs: keys.dueMsOf(duesk),
  }
}
export type ClusterRecord = ReturnType<typeof parseCluster>

export const intervals: Intervals = {
  heartbeatSeconds: config.PLAT_HEARTBEAT_INTERVAL_SECONDS,
  channelHeartbeatSeconds: config.PLAT_CHANNEL_HEARTBEAT_SECONDS,
  brokerStartedAtMs: config.PLAT_STARTED_AT_MS,
}

export const countedPresence = (record: ClusterRecord) =>
  withoutDowntime(record, { nowMs: now(), runningSinceMs: runningSinceMs() }, intervals)

export const currentStatus = (record: ClusterRecord): ClusterStatus => clusterStatus(countedPresence(record), now())

/** While a channel is open, the relay counts as seen now, unless its heartbeats are overdue. */
function lastSeenMsOf(record: ClusterRecord): number {
  const { silence } = countedPresence(record)
  const isSeenNow = isChannelOpen(record, intervals) && now() - silence.sinceMs <= silence.degradedMs
  return isSeenNow ? now() : Math.min(Math.max(record.lastSeenAtMs, record.channelClosedAtMs ?? 0), now())
}

export const summary = (record: ClusterRecord, labels: Labels): ClusterSummary => ({
  id: record.id,
  name: record.name,
  type: record.type,
  status: currentStatus(record),
  nodeCount: record.nodeCount,
  ...(record.siteId === undefined ? {} : { siteId: record.siteId }),
  labels,
  registeredAt: iso(record.registeredAtMs),
  lastSeenAt: record.lastSeenAtMs === 0 ? null : iso(lastSeenMsOf(record)),
  ...(record.pendingRelayId !== undefined && { awaitsApproval: true as const }),
  ...(record.lastJob !== undefined && { lastJobId: `job_${record.lastJob}` }),
})

/** The name in the item of a cluster; undefined if the cluster was removed. */
export const clusterNameOf = (item: Item | undefined): string | undefined =>
  typeof item?.['name'] === 'string' ? item['name'] : undefined

export const statusCountName = (type: string, status: string): string => `${type}#${status}`

export function countByStatus(item: Item | undefined): ClusterCounts {
  const sum = (status: ClusterStatus): number =>
    Math.max(
      0,
      clusterTypes.reduce((total, type) => total + Number(item?.[statusCountName(type, status)] ?? 0), 0),
    )
  return { Healthy: sum('Healthy'), Degraded: sum('Degraded'), Pending: sum('Pending'), Offline: sum('Offline') }
}

/** For the transaction that changes the status. The revision lets readers order snapshots of the counts. */
export const statusCountWrite = (
  record: Pick<ClusterRecord, 'organisationId' | 'type'>,
  from: ClusterStatus | undefined,
  to: ClusterStatus | undefined,
) =>
  upsert(keys.clusterStatusCounts(record.organisationId), {
    add: {
      ...(from === undefined ? {} : { [statusCountName(record.type, from)]: -1 }),
      ...(to === undefined ? {} : { [statusCountName(record.type, to)]: 1 }),
      revision: 1,
    },
  })

export const statusEvent = (
  { id, name, status: previousStatus }: Pick<ClusterRecord, 'id' | 'name' | 'status'>,
  status: ClusterStatus,
) => ({
  name: 'cluster.status_changed' as const,
  subject: id,
  data: { clusterId: id, name, status, previousStatus },
})

/** If a silent cluster is first checked after it has become Offline, also returns the event for Degraded. */
export function statusEvents(record: ClusterRecord, status: ClusterStatus) {
  if (status === record.status) return []
  const { sinceMs, degradedMs, offlineMs } = countedPresence(record).silence
  const silenceMs = now() - sinceMs
  const wasDegraded = degradedMs < offlineMs && silenceMs > offlineMs && !record.saidGoodbye
  if (record.status !== 'Healthy' || status !== 'Offline' || !wasDegraded) return [statusEvent(record, status)]
  return [statusEvent(record, 'Degraded'), statusEvent({ ...record, status: 'Degraded' }, status)]
}

export const statusIndexKeys = (record: Pick<ClusterRecord, 'organisationId' | 'type'>, status: ClusterStatus) => ({
  status,
  ...keys.clusterIndexKeys(record.organisationId, record.type, status),
})

/** The relays that are stored for a cluster: the current one, or one that waits for approval. */
export const relayIdsOf = ({ relayId, pendingRelayId }: Pick<ClusterRecord, 'relayId' | 'pendingRelayId'>): string[] =>
  [relayId, pendingRelayId].filter((id) => id !== undefined)
