import { type ClusterStatus, type NodeStatus, type RelayStatus } from '@platform/contract/cluster'

export interface Presence {
  relayId?: string | undefined
  /** 0 until a relay enrolls. */
  lastSeenAtMs: number
  /** False between the first and the second heartbeat of a cluster that was Offline. */
  isSteady: boolean
  saidGoodbye: boolean
  nodeCount: number
  nodesOnline: number
}

/** Time without a heartbeat until a cluster is Degraded or Offline. For short intervals both are 2·interval + 20 s. */
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
 * Returns undefined to keep the scheduled check. The extra 3.5 intervals let only every fourth heartbeat write to the
 * index.
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

export function nextCheckAfterSweep(presence: Presence, nowMs: number, intervalSeconds: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  return [degradedMs, offlineMs].map((limitMs) => presence.lastSeenAtMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}
