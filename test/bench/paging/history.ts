import { entryItem, genesisHash } from '@platform/core/audit/entry'
import * as keys from '@platform/core/db/keys'
import { derivedId, newId, sha256 } from '@platform/core/id'
import { parseJob } from '@platform/core/jobs/record'
import { range } from '../support/statistics.ts'
import { type Stored, writeItems } from './write.ts'

/** What an organisation has done for a long time, written as it is stored. */
export interface History {
  organisationId: string
  jobs: number
  entries: number
}

const statuses = ['Completed', 'Completed', 'Completed', 'Failed', 'Cancelled'] as const

/** Writes ended jobs, one every ten seconds, and audit entries. */
export async function writeHistory(
  environment: Record<string, string>,
  { jobs, entries }: Omit<History, 'organisationId'>,
): Promise<History> {
  const organisationId = newId('org')
  const clusterIds = range(100).map(() => newId('clus'))
  const firstMs = Date.now() - jobs * 10_000
  const rows = range(jobs).map((index) =>
    storedJob(organisationId, clusterIds[index % clusterIds.length] ?? '', firstMs + index * 10_000, index),
  )
  await writeItems(environment, [...rows, totals(organisationId, rows)])
  await writeItems(environment, trail(organisationId, entries))
  return { organisationId, jobs, entries }
}

function storedJob(organisationId: string, clusterId: string, createdAtMs: number, index: number): Stored {
  const id = newId('job', createdAtMs)
  const status = statuses[index % statuses.length] ?? 'Completed'
  const facts = { id, organisationId, clusterId, type: 'InvokeScript', status, timeoutSeconds: 3600, createdAtMs }
  const run = {
    relayId: newId('relay'),
    leaseId: newId('lease'),
    claimKey: crypto.randomUUID(),
    completion: sha256(id),
    dispatchedAtMs: createdAtMs,
    startedAtMs: createdAtMs,
    leaseRenewedAtMs: createdAtMs,
    completedAtMs: createdAtMs + 5000,
  }
  const row = { ...facts, createdBy: newId('user'), expiresAtMs: createdAtMs + 3_600_000, ...run }
  const item = { ...keys.job(organisationId, id), ...row, ...keys.jobIndexKeys(row) }
  // What core could not read back would measure nothing.
  parseJob(item)
  return item
}

function totals(organisationId: string, rows: readonly Stored[]): Stored {
  const counts: Record<string, number> = { total: rows.length }
  for (const { status } of rows) counts[String(status)] = (counts[String(status)] ?? 0) + 1
  return { ...keys.jobTotals(organisationId), ...counts }
}

/** The audit trail, chained as the platform chains it: by one of two users, every tenth entry of another kind. */
function trail(organisationId: string, count: number): Stored[] {
  const users = [newId('user'), newId('user')]
  const items: Stored[] = []
  let head = { seq: 0, atMs: Date.now() - count * 1000, hash: genesisHash(organisationId) }
  for (const index of range(count)) {
    const place = { seq: head.seq + 1, atMs: head.atMs + 1000, previousHash: head.hash }
    const id = derivedId('evt', place.atMs, String(index))
    const actor = { kind: 'user' as const, id: users[index % 2] ?? '' }
    const action = index % 10 === 0 ? 'cluster.update' : 'job.submit'
    const audit = { action, resource: newId('job'), detail: newId('clus') }
    const context = { organisationId, address: '192.0.2.1', traceId: sha256(id).slice(0, 32), atMs: place.atMs }
    const item = entryItem({ id, actor, ...context, audit, events: [], transitions: [] }, audit, place)
    items.push({ ...keys.auditEntry(organisationId, place.seq), ...item })
    head = { seq: place.seq, atMs: place.atMs, hash: item.hash }
  }
  return [...items, { ...keys.auditHead(organisationId), ...head }]
}
