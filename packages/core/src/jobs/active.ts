import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { indexedKeys } from '../db/index-page.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'

/** With more organisations a job is assumed to be running. */
const organisationLimit = 20_000
const pageSize = 1000

/** The number of job records checked; with as many entries a job is assumed to be running. */
const lookedAt = 100

/**
 * Whether a job or operation runs in any organisation. Candidates come from the job totals, which lag as projections
 * do. Eleven calls per 1,000 organisations, 220 at most, and two per candidate.
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

/**
 * Checks the job records, because the totals may still count an update that has ended, which must not block a rollback.
 */
async function isJobRunningIn(organisationId: string): Promise<boolean> {
  const range = { index: 'gsi3', pk: keys.organisationJobs(organisationId, 'Running') } as const
  const found = await indexedKeys({ ...range, newestFirst: true, limit: lookedAt })
  if (found.length === lookedAt) return true
  const jobs = found.length === 0 ? [] : await getMany(found)
  return jobs.some((job) => job?.['status'] === 'Running')
}
