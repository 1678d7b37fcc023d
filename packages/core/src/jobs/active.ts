import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { indexedKeys } from '../db/index-page.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'

/** With more organisations than this some job always runs. */
const organisationLimit = 20_000
const pageSize = 1000

/** So many of the jobs that may run are looked at; where there are as many, one does. */
const lookedAt = 100

/**
 * Whether a job runs in any organisation, those of the platform on itself included. The totals say where to look: they lag
 * behind by as much as the books do. Eleven calls for each 1,000 organisations, 220 at most, and two for each that may be busy.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let seen = 0; seen < limit; seen += pageSize) {
    const part = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const ids = part.items.map(({ sk }) => String(sk))
    const totals = await getMany(ids.map(keys.jobTotals))
    const busy = ids.filter((_, index) => countJobs(totals[index], 'Running') > 0)
    for (const organisationId of busy) if (await isJobRunningIn(organisationId)) return true
    if (part.next === undefined) return false
    after = part.next
  }
  return true
}

/** What the totals say is looked at: an update that has just ended is in them still, and must not hold up the way back. */
async function isJobRunningIn(organisationId: string): Promise<boolean> {
  const range = { index: 'gsi3', pk: keys.organisationJobs(organisationId, 'Running') } as const
  const found = await indexedKeys({ ...range, newestFirst: true, limit: lookedAt })
  if (found.length === lookedAt) return true
  const jobs = found.length === 0 ? [] : await getMany(found)
  return jobs.some((job) => job?.['status'] === 'Running')
}
