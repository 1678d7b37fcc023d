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

/** With a check of clusters every 10 s, each status is found within 60 s, and time remains to notify. */
const maxCheckDelayMs = 45_000

/**
 * Returns undefined to keep the scheduled check. At the default interval only every fourth heartbeat writes to the
 * index, and it does so before the check is due.
 */
export function nextCheckAfterHeartbeat(
  nowMs: number,
  scheduledMs: number,
  intervalSeconds: number,
): number | undefined {
  const intervalMs = intervalSeconds * 1000
  const { degradedMs } = heartbeatTimeouts(intervalSeconds)
  const latestMs = nowMs + degradedMs + Math.min(maxCheckDelayMs, 1.5 * intervalMs)
  // A later time was scheduled before the clock stepped back.
  const isKept = scheduledMs >= nowMs + (2 / 3) * intervalMs && scheduledMs <= latestMs
  return isKept ? undefined : latestMs
}

export function nextCheckAfterSweep(presence: Presence, nowMs: number, intervalSeconds: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  return [degradedMs, offlineMs].map((limitMs) => presence.lastSeenAtMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}

/**
 * Time in which the platform did not run does not count as silence, but does not improve a stored status either. Silence
 * therefore starts when the platform ran again, less the silence that the stored status already implies. Silence that
 * the sweep has found lasts until a heartbeat, and no heartbeat is in the future, even if the clock was set back.
 */
export function withoutDowntime<Stored extends Presence & { status: ClusterStatus }>(
  stored: Stored,
  { nowMs, runningSinceMs }: { nowMs: number; runningSinceMs: number },
  intervalSeconds: number,
): Stored {
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const isSilent = stored.status === 'Degraded' && stored.nodesOnline === stored.nodeCount
  const impliedMs = stored.status === 'Offline' ? offlineMs + 1 : isSilent ? degradedMs + 1 : 0
  const lastSeenAtMs = Math.max(stored.lastSeenAtMs, runningSinceMs - impliedMs)
  const isReporting = !stored.isSteady || stored.saidGoodbye || stored.nodesOnline === 0
  return { ...stored, lastSeenAtMs: Math.min(lastSeenAtMs, nowMs - (isReporting ? 0 : impliedMs)) }
}
