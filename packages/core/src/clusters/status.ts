import { type ClusterStatus, type NodeStatus, type RelayStatus } from '@platform/contract/cluster'

/** Presence rules as pure functions of the time and the cluster record, shared by reads, filters and the sweep. */

/** The presence data of a cluster. */
export interface Presence {
  relayId?: string | undefined
  /** 0 until a relay enrolls. */
  lastSeenAtMs: number
  /** False from the first heartbeat after Offline to the second. */
  isSteady: boolean
  saidGoodbye: boolean
  nodeCount: number
  nodesOnline: number
}

/** When a silent cluster becomes Degraded and Offline. For short intervals the grace period of 20 s decides both. */
export const heartbeatTimeouts = (intervalSeconds: number): { degradedMs: number; offlineMs: number } => {
  const degradedMs = (2 * intervalSeconds + 20) * 1000
  return { degradedMs, offlineMs: Math.max(4 * intervalSeconds * 1000, degradedMs) }
}

/** The status of a cluster at a time. */
export function clusterStatus(presence: Presence, nowMs: number, intervalSeconds: number): ClusterStatus {
  if (presence.relayId === undefined) return 'Pending'
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const silenceMs = nowMs - presence.lastSeenAtMs
  if (presence.saidGoodbye || !presence.isSteady || silenceMs > offlineMs || presence.nodesOnline === 0)
    return 'Offline'
  return silenceMs > degradedMs || presence.nodesOnline < presence.nodeCount ? 'Degraded' : 'Healthy'
}

/** The status of a cluster's relay at a time. */
export function relayStatus(presence: Presence, nowMs: number, intervalSeconds: number): RelayStatus {
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const silenceMs = nowMs - presence.lastSeenAtMs
  if (presence.saidGoodbye || silenceMs > offlineMs) return 'Disconnected'
  return silenceMs > degradedMs ? 'Stale' : 'Connected'
}

/** The status of a node: unknown while its cluster is Offline. */
export const nodeStatus = (reported: 'Online' | 'Offline', cluster: ClusterStatus): NodeStatus =>
  cluster === 'Offline' ? 'Unknown' : reported

/**
 * When the sweep must check a cluster after a heartbeat, or undefined if silence cannot change its status. The due time
 * lags by 3.5 heartbeats, so that only every fourth heartbeat writes the index.
 */
export function nextCheckAfterHeartbeat(
  nowMs: number,
  filedDueMs: number,
  intervalSeconds: number,
): number | undefined {
  const { degradedMs } = heartbeatTimeouts(intervalSeconds)
  const isFarEnough = filedDueMs >= nowMs + degradedMs
  return isFarEnough ? undefined : nowMs + degradedMs + 3500 * intervalSeconds
}

/** When the sweep must check a cluster again, or undefined if only a heartbeat can change its status. */
export function nextCheckAfterSweep(presence: Presence, nowMs: number, intervalSeconds: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  return [degradedMs, offlineMs].map((limitMs) => presence.lastSeenAtMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}
