import { projections } from '@platform/core/background/projections'
import { parseEntry } from '@platform/core/audit/entry'
import { runProjections, writesWithCounts } from '@platform/core/outbox/run-projections'
import type { Actor, Caller } from '@platform/core/caller'
import { commit, outboxWrite } from '@platform/core/outbox/commit'
import * as keys from '@platform/core/db/keys'
import { get, type Item, query, type WriteItem } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { readOldestRecords, type OutboxRecord, parseRecord, type Effects } from '@platform/core/outbox/record'

export const drainOutbox = (organisationId: string): Promise<boolean> => runProjections(organisationId, projections)

export const commitEffects = async (actor: Actor, effects: Effects): Promise<void> => {
  await commit(actor, { writes: [], ...effects })
}

/** Writes many outbox records without messages. */
export async function writeOutboxRecords(actor: Actor, effects: readonly Effects[]): Promise<void> {
  for (let first = 0; first < effects.length; first += 100) {
    await transact(effects.slice(first, first + 100).map((effect) => outboxWrite(actor, effect)))
  }
}

export const auditEffect = (action: string, resource = newId('site'), detail = ''): Effects => ({
  audit: { action, resource, detail },
})

export const statusChangedEffect = (clusterId: string, previousStatus: string, status: string): Effects => ({
  events: [
    {
      name: 'cluster.status_changed',
      subject: clusterId,
      data: { clusterId, name: 'berlin-1', status, previousStatus } as any,
    },
  ],
})

export async function readPendingRecords(organisationId: string): Promise<OutboxRecord[]> {
  return (await readOldestRecords(organisationId, 1000)).map(parseRecord)
}

/** Returns the pending events with these names, or all, oldest first. */
export async function readPendingEvents({ organisationId }: { organisationId: string }, ...names: string[]) {
  const events = (await readPendingRecords(organisationId)).flatMap((record) => record.events)
  return events.filter(({ name }) => names.length === 0 || names.includes(name))
}

/**
 * Returns all entries of an audit trail, oldest first. Reads them from the table, because an export would add an entry.
 */
export async function readAuditEntries({ organisationId }: Pick<Caller, 'organisationId'>): Promise<any[]> {
  const entries: any[] = []
  let after: Item | undefined
  do {
    const page = await query({ pk: keys.auditEntry(organisationId, 1).pk, ...(after && { after }) })
    entries.push(...page.items.map(parseEntry))
    after = page.next
  } while (after !== undefined)
  return entries
}

export const runBeforeCommit = async (organisationId: string, records: readonly OutboxRecord[]): Promise<void> => {
  await Promise.all(projections.map(async (projection) => projection.beforeCommit?.(organisationId, records)))
}

export const countsOf = async (organisationId: string): Promise<Item> =>
  (await get(keys.organisationCounts(organisationId))) ?? {}

export async function projectionWrites(
  organisationId: string,
  records: readonly OutboxRecord[],
  counts: Item,
): Promise<WriteItem[]> {
  const writes = projections.map(async (projection) => projection.writes?.(organisationId, records) ?? [])
  return [
    ...writesWithCounts({ organisationId, counts, projectedIds: [] }, records, projections),
    ...(await Promise.all(writes)).flat(),
  ]
}
