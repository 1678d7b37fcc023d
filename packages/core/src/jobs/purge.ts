import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { removeAll } from '../db/remove-all.ts'
import { getConsistent, type Item, query, remove } from '../db/table.ts'
import { parseJob } from './record.ts'
import { transitionOf } from '../outbox/record.ts'

/** Rows that go in one transaction, and are counted out of the totals with it. */
const atOnce = 50

/** Jobs whose output and results are removed side by side. */
const sideBySide = 10

/**
 * Clears ended jobs of a removed cluster until none is left or some time is over; answers whether there were none. One walk:
 * what the index still shows of jobs that went is passed.
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

/** A job's own row, which the index shows, goes last, and with it the job leaves the totals. */
async function clear(organisationId: string, found: readonly keys.Key[]): Promise<void> {
  for (let from = 0; from < found.length; from += sideBySide) {
    // The first text behind that of the row itself.
    await Promise.all(found.slice(from, from + sideBySide).map(({ pk, sk }) => removeAll({ pk, from: `${sk} ` })))
  }
  const rows = (await getConsistent(found)).filter((item) => item !== undefined).map(parseJob)
  if (rows.length === 0) return
  await commit(system(organisationId), {
    steps: rows.map(({ id, status }) => remove(keys.job(organisationId, id), { status: { is: status } })),
    moves: rows.map((row) => transitionOf(row, row.status, undefined)),
  })
}
