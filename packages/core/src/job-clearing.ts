import { system } from './caller.ts'
import { commit } from './change.ts'
import * as keys from './db/keys.ts'
import { getAll, query, remove, removeAll } from './db/table.ts'
import { parseJob } from './job-row.ts'
import { moveOf } from './record.ts'

/** Rows that go in one transaction, and are counted out of the totals with it. */
const atOnce = 50

/**
 * Clears some ended jobs of a removed cluster; answers whether there were none. A job's own row, which the index shows, goes
 * last, and with it the job leaves the totals.
 */
export async function clearJobs(organisationId: string, clusterId: string): Promise<boolean> {
  const { items } = await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId), limit: atOnce })
  if (items.length === 0) return true
  const found = items.map(({ pk, sk }) => ({ pk: String(pk), sk: String(sk) }))
  // The first text behind that of the row itself.
  await Promise.all(found.map(({ pk, sk }) => removeAll({ pk, from: `${sk} ` })))
  const rows = (await getAll(found)).filter((item) => item !== undefined).map(parseJob)
  if (rows.length === 0) return false
  await commit(system(organisationId), {
    steps: rows.map(({ id, status }) => remove(keys.job(organisationId, id), { status: { is: status } })),
    moves: rows.map((row) => moveOf(row, row.status, undefined)),
  })
  return false
}
