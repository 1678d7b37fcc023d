import * as keys from './db/keys.ts'
import { getMany, type Item, query } from './db/table.ts'
import { totalOf } from './job-totals.ts'
import { organisations } from './organisation.ts'

/** With more organisations than this some job always runs. */
const organisationLimit = 20_000
const pageSize = 1000

/**
 * Whether a job runs in any organisation, those of the platform on itself included. By the totals: they lag behind by as much
 * as the books do. Eleven calls for each 1,000 organisations, until one is found that has a running job; 220 at most.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let seen = 0; seen < limit; seen += pageSize) {
    const part = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const totals = await getMany(part.items.map(({ sk }) => keys.jobTotals(String(sk))))
    if (totals.some((item) => totalOf(item, 'Running') > 0)) return true
    if (part.next === undefined) return false
    after = part.next
  }
  return true
}
