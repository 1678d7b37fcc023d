import type { Heartbeat } from '@platform/contract/relay'
import { type RelayCaller } from '../caller.ts'
import { isWithin, now } from '../clock.ts'
import { type ClusterRecord } from '../clusters/record.ts'
import { config } from '../config.ts'

/**
 * Each start of a relay uses a new instance id. After a restart the former id never returns; if it does, two relays
 * use one key, for example because a state folder was copied.
 */

const maxFormerInstances = 5
const twoIntervalsMs = 2 * config.PLAT_HEARTBEAT_INTERVAL_SECONDS * 1000
/** If an id returns after a longer time, it is not reported, because two running relays alternate much faster. */
const windowMs = Math.max(3_600_000, twoIntervalsMs)
/** Each running relay sends a heartbeat within this time. */
const oldestKeptMs = Math.max(600_000, twoIntervalsMs)
const reportIntervalMs = 3_600_000

interface FormerInstance {
  id: string
  replacedAtMs: number
}

/** A relay with a copied key must not avoid the comparison by sending no id. */
const idOf = (record: ClusterRecord, { instanceId }: Heartbeat): string | undefined =>
  instanceId ?? (record.instanceId === undefined ? undefined : 'none')

/** The fields of the cluster to store with this heartbeat. */
export function instanceAfter(record: ClusterRecord, { issuedAtMs }: RelayCaller, heartbeat: Heartbeat) {
  const instanceId = idOf(record, heartbeat)
  if (instanceId === undefined || instanceId === record.instanceId) return {}
  const former = parseFormer(record.formerInstances).filter(({ replacedAtMs }) => isWithin(replacedAtMs, windowMs))
  const returned = former.find(({ id }) => id === instanceId)
  // The network may delay the last request of a stopped relay.
  if (returned !== undefined && issuedAtMs < returned.replacedAtMs) return {}
  const replaced = record.instanceId === undefined ? [] : [{ id: record.instanceId, replacedAtMs: now() }]
  const others = former.filter(({ id }) => id !== instanceId)
  const isReported = returned !== undefined && !isWithin(record.duplicateReportedAtMs, reportIntervalMs)
  return {
    instanceId,
    formerInstances: formatFormer(bounded([...replaced, ...others])),
    ...(isReported && { duplicateReportedAtMs: now() }),
  }
}

/** Newest first. Keeps the oldest instance long enough to recognise its return, however many relays run. */
function bounded(former: FormerInstance[]): FormerInstance[] {
  const oldest = former.slice(maxFormerInstances - 1).at(-1)
  const isKept = oldest !== undefined && isWithin(oldest.replacedAtMs, oldestKeptMs)
  return isKept ? [...former.slice(0, maxFormerInstances - 1), oldest] : former.slice(0, maxFormerInstances)
}

const parseFormer = (text: string): FormerInstance[] =>
  text
    .split(',')
    .map((entry) => entry.split('@'))
    .map(([id = '', replacedAtMs]) => ({ id, replacedAtMs: Number(replacedAtMs) }))

const formatFormer = (former: readonly FormerInstance[]): string =>
  former.map(({ id, replacedAtMs }) => `${id}@${replacedAtMs}`).join(',')
