import type { Heartbeat, HeartbeatResponse } from '@platform/contract/relay'
import type { ClusterRecord } from '../clusters/record.ts'

/**
 * The part of a relay update that a heartbeat reads and writes: an offer, the problem because of which the relay waits,
 * and later the result, until the update collects it. The marker is in the record of the cluster, so that a heartbeat
 * needs no further request.
 */
type Marker = Pick<ClusterRecord, 'relayUpdateId' | 'relayOffer' | 'relayUpdateResult' | 'relayUpdateProblem'>

export const markerFields = [
  'relayUpdateId',
  'relayOffer',
  'relayUpdateResult',
  'relayUpdateProblem',
] as const satisfies (keyof Marker)[]

export const offerText = ({ version, sha256, signature }: Record<'version' | 'sha256' | 'signature', string>): string =>
  [version, sha256, signature].join(' ')

export function offerOf({ relayUpdateId: id, relayOffer, relayUpdateResult }: Marker): HeartbeatResponse['update'] {
  if (id === undefined || relayOffer === undefined || relayUpdateResult !== undefined) return undefined
  const [version = '', sha256 = '', signature = ''] = relayOffer.split(' ')
  return { id, version, sha256, signature }
}

/** The limit keeps the write of a heartbeat below 1 KB. */
const maxProblemLength = 120

/** Returns the change that a report makes. Reports about another update, and reports after a result, change nothing. */
export function resultOf(
  { relayUpdateId, relayUpdateResult, relayUpdateProblem = '' }: Marker,
  { update }: Heartbeat,
): Partial<Marker> {
  if (update === undefined || update.id !== relayUpdateId || relayUpdateResult !== undefined) return {}
  const reason = (update.reason ?? '').toWellFormed().replaceAll(/[\p{Cc}\u2028\u2029]/gu, ' ')
  if (update.status === 'pending') {
    const problem = reason.slice(0, maxProblemLength).toWellFormed()
    return problem === relayUpdateProblem ? {} : { relayUpdateProblem: problem }
  }
  return { relayUpdateResult: `${update.status} ${reason}`.trim() }
}
