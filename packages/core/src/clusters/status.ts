import { type ClusterStatus, type NodeStatus, type RelayStatus } from '@platform/contract/cluster'

/** D20 as pure functions of the time and of what a cluster's row says: reads, filters and the sweep all ask these. */

/** What is known of a cluster's presence. */
export interface Presence {
  relayId?: string | undefined
  /** 0 until a relay has enrolled. */
  lastSeenAtMs: number
  /** False between the first beat after Offline and the second. */
  isSteady: boolean
  saidGoodbye: boolean
  nodeCount: number
  nodesOnline: number
}

/** When silence turns a cluster Degraded and Offline. Where the interval is short the grace of 20 s decides both. */
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

/** What is known of a node while its cluster has a status: nothing, once the cluster is Offline. */
export const nodeStatus = (reported: 'Online' | 'Offline', cluster: ClusterStatus): NodeStatus =>
  cluster === 'Offline' ? 'Unknown' : reported

/**
 * When the sweep must look at a cluster that has just been heard, or undefined if silence cannot change its status.
 * The due time lags the rule by three beats and a half: an index write is needed at every fourth beat only, late ones too.
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

/** When the sweep must look again at a cluster whose status it has just judged, or undefined if only a beat changes it. */
export function nextCheckAfterSweep(presence: Presence, nowMs: number, intervalSeconds: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  return [degradedMs, offlineMs].map((limitMs) => presence.lastSeenAtMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}
