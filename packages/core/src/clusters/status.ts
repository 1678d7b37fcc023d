import type { ClusterStatus, NodeStatus, RelayStatus } from '@platform/contract/cluster'

export interface Presence {
  relayId?: string | undefined
  /** Time of the last heartbeat or of the enrollment; 0 before the cluster has a relay. */
  lastSeenAtMs: number
  /** False between the first and the second heartbeat of a cluster that was Offline. */
  isSteady: boolean
  saidGoodbye: boolean
  nodeCount: number
  nodesOnline: number
  /** The newest control channel, as the broker reported it; `channelClosedAtMs` is absent while it is open. */
  channelOpenedAtMs?: number | undefined
  channelClosedAtMs?: number | undefined
}

export interface Intervals {
  heartbeatSeconds: number
  /** The heartbeat interval while the control channel is open. */
  channelHeartbeatSeconds: number
  /** A channel that was opened earlier has ended without an event. */
  brokerStartedAtMs: number
}

/** The time of silence after which a cluster is Degraded or Offline. */
interface Limits {
  degradedMs: number
  offlineMs: number
}

/** For intervals of at most 10 s, both limits are 2·interval + 20 s. */
export const heartbeatTimeouts = (intervalSeconds: number): Limits => {
  const degradedMs = (2 * intervalSeconds + 20) * 1000
  return { degradedMs, offlineMs: Math.max(4 * intervalSeconds * 1000, degradedMs) }
}

/** Short, because a running relay sends a heartbeat at once when it loses its channel. */
const closedTimeouts: Limits = { degradedMs: 8000, offlineMs: 60_000 }
/**
 * The end of a channel that was open for a shorter time proves nothing: channels that open and close repeatedly must
 * not change the status.
 */
const stableChannelMs = 120_000

export interface Silence extends Limits {
  sinceMs: number
}

export const isChannelOpen = (
  { channelOpenedAtMs, channelClosedAtMs }: Presence,
  { brokerStartedAtMs }: Pick<Intervals, 'brokerStartedAtMs'>,
): boolean =>
  channelOpenedAtMs !== undefined && channelClosedAtMs === undefined && channelOpenedAtMs >= brokerStartedAtMs

function silenceOf(presence: Presence, intervals: Intervals): Silence {
  const { lastSeenAtMs, channelOpenedAtMs = 0, channelClosedAtMs = 0 } = presence
  if (isChannelOpen(presence, intervals)) {
    const sinceMs = Math.max(lastSeenAtMs, channelOpenedAtMs)
    return { sinceMs, ...heartbeatTimeouts(Math.max(intervals.heartbeatSeconds, intervals.channelHeartbeatSeconds)) }
  }
  const isNewestSign = channelClosedAtMs > lastSeenAtMs
  const isDecisive = isNewestSign && channelClosedAtMs - channelOpenedAtMs >= stableChannelMs
  const limits = isDecisive ? closedTimeouts : heartbeatTimeouts(intervals.heartbeatSeconds)
  return { sinceMs: isNewestSign ? channelClosedAtMs : lastSeenAtMs, ...limits }
}

export type SilentPresence = Presence & { silence: Silence }

export const withSilence = <Stored extends Presence>(presence: Stored, intervals: Intervals) => ({
  ...presence,
  silence: silenceOf(presence, intervals),
})

export function clusterStatus({ silence, ...presence }: SilentPresence, nowMs: number): ClusterStatus {
  if (presence.relayId === undefined) return 'Pending'
  const silenceMs = nowMs - silence.sinceMs
  if (presence.saidGoodbye || !presence.isSteady || silenceMs > silence.offlineMs || presence.nodesOnline === 0)
    return 'Offline'
  return silenceMs > silence.degradedMs || presence.nodesOnline < presence.nodeCount ? 'Degraded' : 'Healthy'
}

export function relayStatus({ silence, saidGoodbye }: SilentPresence, nowMs: number): RelayStatus {
  const silenceMs = nowMs - silence.sinceMs
  if (saidGoodbye || silenceMs > silence.offlineMs) return 'Disconnected'
  return silenceMs > silence.degradedMs ? 'Stale' : 'Connected'
}

export const nodeStatus = (reportedStatus: 'Online' | 'Offline', cluster: ClusterStatus): NodeStatus =>
  cluster === 'Offline' ? 'Unknown' : reportedStatus

/** Clusters are checked every 10 s, so Degraded or Offline is detected at most 55 s after its heartbeat timeout. */
const maxCheckDelayMs = 45_000

/**
 * Returns undefined to keep the scheduled check, so that most heartbeats do not write to the index. While a channel is
 * open, the check is for Offline only, because the broker reports the end of the channel.
 */
export function nextCheckAfterHeartbeat(
  nowMs: number,
  scheduledMs: number,
  intervalSeconds: number,
  isOpen = false,
): number | undefined {
  const intervalMs = intervalSeconds * 1000
  const { degradedMs, offlineMs } = heartbeatTimeouts(intervalSeconds)
  const latestMs = nowMs + (isOpen ? offlineMs : degradedMs) + Math.min(maxCheckDelayMs, 1.5 * intervalMs)
  // A later time was scheduled before the clock stepped back, or with an open channel.
  const isKept = scheduledMs >= nowMs + (2 / 3) * intervalMs && scheduledMs <= latestMs
  return isKept ? undefined : latestMs
}

export function nextCheckAfterSweep({ silence, ...presence }: SilentPresence, nowMs: number): number | undefined {
  if (presence.relayId === undefined || presence.saidGoodbye) return undefined
  const { sinceMs, degradedMs, offlineMs } = silence
  return [degradedMs, offlineMs].map((limitMs) => sinceMs + limitMs + 1).find((dueMs) => dueMs > nowMs)
}

/**
 * Time in which the platform did not run does not count as silence, but does not improve a stored status either.
 * Silence therefore starts when the platform runs again, less the silence that the stored status already implies.
 * Silence that the sweep has found lasts until the next heartbeat. A sign of the relay in the future counts as now,
 * because the clock was set back.
 */
export function withoutDowntime<Stored extends Presence & { status: ClusterStatus }>(
  presence: Stored,
  { nowMs, runningSinceMs }: { nowMs: number; runningSinceMs: number },
  intervals: Intervals,
): Stored & { silence: Silence } {
  const silence = silenceOf(presence, intervals)
  const isSilent = presence.status === 'Degraded' && presence.nodesOnline === presence.nodeCount
  const impliedMs = presence.status === 'Offline' ? silence.offlineMs + 1 : isSilent ? silence.degradedMs + 1 : 0
  const sinceMs = Math.max(silence.sinceMs, runningSinceMs - impliedMs)
  const isOfflineAnyway = !presence.isSteady || presence.saidGoodbye || presence.nodesOnline === 0
  return { ...presence, silence: { ...silence, sinceMs: Math.min(sinceMs, nowMs - (isOfflineAnyway ? 0 : impliedMs)) } }
}
