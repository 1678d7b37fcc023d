import type { Heartbeat } from '@platform/contract/relay'
import { type RelayCaller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import { type ClusterRecord } from '../clusters/record.ts'

/**
 * Each start of a relay sends its own instance id. After a restart the former id never returns; if it does, two relays
 * use one key, for example because a state folder was copied.
 */

const maxFormerInstances = 4
/** Two running relays alternate much faster. */
const windowMs = 3_600_000
const reportIntervalMs = 3_600_000

/** The fields of the cluster to store with this heartbeat. */
export function instanceAfter(record: ClusterRecord, { issuedAtMs }: RelayCaller, { instanceId }: Heartbeat) {
  if (instanceId === undefined || instanceId === record.instanceId) return {}
  const former = record.formerInstances.split(',').filter(Boolean)
  const isFormer = former.includes(instanceId) && isWithin(record.instanceSinceMs, windowMs)
  // The network may delay the last request of a stopped relay.
  if (isFormer && issuedAtMs < record.instanceSinceMs) return {}
  const known = record.instanceId === undefined ? former : [record.instanceId, ...former]
  const formerInstances = known.filter((id) => id !== instanceId).slice(0, maxFormerInstances)
  const isReported = isFormer && !isWithin(record.duplicateReportedAtMs, reportIntervalMs)
  return {
    instanceId,
    instanceSinceMs: now(),
    formerInstances: formerInstances.join(','),
    ...(isReported && { duplicateReportedAtMs: now() }),
  }
}
