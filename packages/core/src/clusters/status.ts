import { type ClusterStatus, type NodeStatus, type RelayStatus } from '@platform/contract/cluster'

/** Presence rules, shared by reads, filters and the sweep. */

export interface Presence {
  relayId?: string | undefined
  /** 0 until a relay enrolls. */
  lastSeenAtMs: number
  /** False between the first and the second heartbeat after Offline. */
  isSteady: boolean
  saidGoodbye: boolean
  nodeCount: number
  nodesOnline: number
}

/** When a silent cluster becomes Degraded and Offline. For short intervals both are 2·I + 20 s. */
export const heartbeatTimeouts = (intervalSeconds: number): { degradedMs: number; offlineMs: number } => {
  const degradedMs = (2 * intervalSeconds + 20) * 1000
  return { degradedMs, offlineMs: Math.max(4 * intervalSeconds * 1000, degradedMs) }
}

export function clusterStatus(presence: Presence, nowMs: number, intervalSeconds: number): ClusterStatus {
  if (presence.relayId === undefined) return 'Pending'
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const silenceMs = nowMs - presence.lastSeenAtMs
  if (presence.saidGoodbye || !presence.isSteady || silenceMs > offlineMs || presence.nodesOnline === 0)
    return 'Offline'
  return silenceMs > degradedMs || presence.nodesOnline < presence.nodeCount ? 'Degraded' : 'Healthy'
}

export function relayStatus(presence: Presence, nowMs: number, intervalSeconds: number): RelayStatus {
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const silenceMs = nowMs - presence.lastSeenAtMs
  if (presence.saidGoodbye || silenceMs > offlineMs) return 'Disconnected'
  return silenceMs > degradedMs ? 'Stale' : 'Connected'
}

export const nodeStatus = (reported: 'Online' | 'Offline', cluster: ClusterStatus): NodeStatus =>
  cluster === 'Offline' ? 'Unknown' : reported

/**
 * When the sweep must check a cluster after a heartbeat, or undefined to leave the scheduled check. The 3.5 extra
 * intervals let only every fourth heartbeat write the index.
 */
export function nextCheckAfterHeartbeat(
  nowMs: number,
  scheduledMs: number,
  intervalSeconds: number,
): number | undefined {
  const { degradedMs } = heartbeatTimeouts(intervalSeconds)
  const isLateEnough = scheduledMs >= nowMs + degradedMs
  return isLateEnough ? undefined : nowMs + degradedMs + 3500 * intervalSeconds
}

/** When the sweep must check a cluster again, or undefined if only a heartbeat can change its status. */
export function nextCheckAfterSweep(presence: Presence, nowMs: number, intervalSeconds: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  return [degradedMs, offlineMs].map((limitMs) => presence.lastSeenAtMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}
