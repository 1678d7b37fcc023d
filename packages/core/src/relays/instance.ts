import type { Heartbeat } from '@platform/contract/relay'
import type { RelayCaller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import type { ClusterRecord } from '../clusters/record.ts'
import { config } from '../config.ts'

/**
 * Each start of a relay uses a new instance id. If an earlier id returns, two relays use one key, for example because a
 * state folder was copied.
 */

const maxFormerInstances = 5
const twoIntervalsMs = 2 * config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
/** An id that returns after a longer time is not reported, because two running relays alternate much faster. */
const windowMs = Math.max(3_600_000, twoIntervalsMs)
/** The oldest instance is kept for this time, in which each running relay sends a heartbeat. */
const oldestKeptMs = Math.max(600_000, twoIntervalsMs)
const reportIntervalMs = 3_600_000

interface FormerInstance {
  id: string
  replacedAtMs: number
}

/** A relay with a copied key must not avoid the comparison by sending no id. */
const instanceIdOf = (record: ClusterRecord, { instanceId }: Heartbeat): string | undefined =>
  instanceId ?? (record.instanceId === undefined ? undefined : 'none')

/** Returns the fields of the cluster to store with this heartbeat. */
export function instanceAfter(record: ClusterRecord, { issuedAtMs }: RelayCaller, heartbeat: Heartbeat) {
  const instanceId = instanceIdOf(record, heartbeat)
  if (instanceId === undefined || instanceId === record.instanceId) return {}
  const instances = parseFormer(record.formerInstances).filter(({ replacedAtMs }) => isWithin(replacedAtMs, windowMs))
  const returnedInstance = instances.find(({ id }) => id === instanceId)
  // The network may delay the last request of a stopped relay.
  if (returnedInstance !== undefined && issuedAtMs < returnedInstance.replacedAtMs) return {}
  const replacedInstances = record.instanceId === undefined ? [] : [{ id: record.instanceId, replacedAtMs: now() }]
  const otherInstances = instances.filter(({ id }) => id !== instanceId)
  const isReported = returnedInstance !== undefined && !isWithin(record.duplicateReportedAtMs, reportIntervalMs)
  return {
    instanceId,
    formerInstances: formatFormer(limitInstances([...replacedInstances, ...otherInstances])),
    ...(isReported && { duplicateReportedAtMs: now() }),
  }
}

/** Expects the newest first. Keeps the oldest instance long enough to recognise its return, however many relays run. */
function limitInstances(instances: FormerInstance[]): FormerInstance[] {
  const oldestInstance = instances.slice(maxFormerInstances - 1).at(-1)
  const isKept = oldestInstance !== undefined && isWithin(oldestInstance.replacedAtMs, oldestKeptMs)
  return isKept
    ? [...instances.slice(0, maxFormerInstances - 1), oldestInstance]
    : instances.slice(0, maxFormerInstances)
}

const parseFormer = (text: string): FormerInstance[] =>
  text
    .split(',')
    .map((entry) => entry.split('@'))
    .map(([id = '', replacedAtMs]) => ({ id, replacedAtMs: Number(replacedAtMs) }))

const formatFormer = (instances: readonly FormerInstance[]): string =>
  instances.map(({ id, replacedAtMs }) => `${id}@${replacedAtMs}`).join(',')
