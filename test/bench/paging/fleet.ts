import type { ClusterStatus, ClusterType } from '@platform/contract/cluster'
import { parseCluster, statusIndexKeys, statusCountName } from '@platform/core/clusters/record'
import * as keys from '@platform/core/db/keys'
import { newId, newNonce } from '@platform/core/id'
import { ListHead } from '@platform/core/db/offset-list'
import { emptyOffsets, type OffsetIndex, withRecord } from '@platform/core/db/offset-index'
import { consumeHeartbeatNonce } from '@platform/core/clusters/request-nonce'
import { range } from '../support/statistics.ts'
import { type Stored, writeItems } from './write.ts'

/** Many clusters of one organisation, written as they are stored after some hours with their relays. */
export interface Fleet {
  organisationId: string
  count: number
  clusterIds: string[]
}

/** Long enough ahead that the whole bench finds the fleet as healthy as it is filed. */
const aheadMs = 3_600_000

/** Writes it for an organisation that has no clusters yet. */
export async function writeFleet(
  environment: Record<string, string>,
  count: number,
  organisationId = newId('org'),
): Promise<Fleet> {
  // Registered one a minute; ids carry the time.
  const firstMs = Date.now() - count * 60_000
  const times = range(count).map((index) => firstMs + index * 60_000)
  const recentTokens = steadyTokens()
  const rows = times.map((timeMs, index) => storedCluster(organisationId, timeMs, index, recentTokens))
  await writeItems(environment, [...rows, head(organisationId, times), tally(organisationId, rows)])
  return { organisationId, count, clusterIds: rows.map((row) => String(row['id'])) }
}

/** Of a hundred clusters 90 are Healthy, 4 Degraded, 5 Offline, and one still waits for its relay. */
function statusOf(index: number): ClusterStatus {
  const percent = index % 100
  if (percent < 90) return 'Healthy'
  return percent < 94 ? 'Degraded' : percent < 99 ? 'Offline' : 'Pending'
}

const typeOf = (index: number): ClusterType => (Math.floor(index / 100) % 2 === 0 ? 'Hypervisor' : 'CloudLocal')

function storedCluster(organisationId: string, timeMs: number, index: number, recentTokens: string): Stored {
  const id = newId('clus', timeMs)
  const status = statusOf(index)
  const type = typeOf(index)
  const name = `cluster-${String(index).padStart(6, '0')}`
  const dueAtMs = Date.now() + 2 * aheadMs
  const isWatched = status !== 'Pending' && status !== 'Offline'
  const presence = status === 'Pending' ? { enrollmentId: newId('enroll') } : heard(status, recentTokens)
  const row = { id, name, type, activeJobs: 0, waitingJobs: 0, ...presence }
  const due = isWatched ? keys.due(id, dueAtMs) : {}
  const filed = { ...row, ...statusIndexKeys({ organisationId, type }, status), ...due }
  const item = { ...keys.cluster(organisationId, id), ...filed }
  // What core could not read back would measure nothing.
  parseCluster(item)
  return item
}

function heard(status: ClusterStatus, recentTokens: string) {
  return {
    relayId: newId('relay'),
    relayName: 'relay on node-1',
    isSteady: true,
    saidGoodbye: status === 'Offline',
    nodeCount: 2,
    nodesOnline: status === 'Degraded' ? 1 : 2,
    nodesHash: '0123456789abcdef',
    beatNonce: newNonce(),
    recentTokens,
    lastSeenAtMs: Date.now() + aheadMs,
  }
}

/** What the row of a relay remembers of its last beats, once it has run for a while. */
function steadyTokens(): string {
  let remembered = '0'
  for (const beat of range(40)) {
    const issuedAtMs = Math.floor(Date.now() / 1000) * 1000 + beat * 30_000
    const caller = { kind: 'relay' as const, relayId: '', organisationId: '', clusterId: '' }
    remembered =
      consumeHeartbeatNonce(remembered, { ...caller, tokenId: crypto.randomUUID(), issuedAtMs }, issuedAtMs) ?? ''
  }
  return remembered
}

function head(organisationId: string, times: readonly number[]): Stored {
  const ranks = times.reduce<OffsetIndex>(withRecord, emptyOffsets())
  const fields = { total: times.length, ranks, lastTimeMs: times.at(-1), version: times.length }
  return { ...keys.clusterOffsets(organisationId), ...ListHead.parse(fields) }
}

function tally(organisationId: string, rows: readonly Stored[]): Stored {
  const counts: Record<string, number> = {}
  for (const { type, status } of rows) {
    const name = statusCountName(String(type), String(status))
    counts[name] = (counts[name] ?? 0) + 1
  }
  return { ...keys.clusterStatusCounts(organisationId), ...counts }
}
