import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { removeAll } from '../db/transact.ts'
import { getConsistent, type Item, query, remove } from '../db/table.ts'
import { parseJob } from './record.ts'
import { transitionOf } from '../outbox/record.ts'

/** Records removed in one transaction with their totals. */
const atOnce = 50

/** Jobs whose output and results are removed concurrently. */
const sideBySide = 10

/**
 * Purges ended jobs of a removed cluster until none is left or the time is over; returns whether there were none. Walks
 * the index once and skips stale entries.
 */
export async function purgeJobs(organisationId: string, clusterId: string, untilMs: number): Promise<boolean> {
  let isClear = true
  let after: Item | undefined
  do {
    const range = { index: 'gsi1', pk: keys.clusterJobs(clusterId), limit: atOnce } as const
    const { items, next } = await query({ ...range, ...(after && { after }) })
    isClear &&= items.length === 0
    await clear(
      organisationId,
      items.map(({ pk, sk }) => ({ pk: String(pk), sk: String(sk) })),
    )
    after = next
  } while (after !== undefined && now() < untilMs)
  return isClear
}

/** The job's record, which the index shows, is removed last, together with its totals. */
async function clear(organisationId: string, found: readonly keys.Key[]): Promise<void> {
  for (let from = 0; from < found.length; from += sideBySide) {
    // Sorts directly after the record itself.
    await Promise.all(found.slice(from, from + sideBySide).map(({ pk, sk }) => removeAll({ pk, from: `${sk} ` })))
  }
  const rows = (await getConsistent(found)).filter((item) => item !== undefined).map(parseJob)
  if (rows.length === 0) return
  await commit(system(organisationId), {
    writes: rows.map(({ id, status }) => remove(keys.job(organisationId, id), { status: { is: status } })),
    transitions: rows.map((row) => transitionOf(row, row.status, undefined)),
  })
}
