import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { indexedKeys } from '../db/index-page.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'

/** If there are more organisations, a job is assumed to be running. */
const organisationLimit = 20_000
const pageSize = 1000

/** The number of job records checked; with as many candidates a job is assumed to be running. */
const candidateLimit = 100

/**
 * Whether a job or operation runs in any organisation. Candidates come from the job totals, which lag as projections
 * do. Eleven calls per 1,000 organisations, 220 at most, and two per candidate.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let count = 0; count < limit; count += pageSize) {
    const organisationPage = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const ids = organisationPage.items.map(({ sk }) => String(sk))
    const totals = await getMany(ids.map(keys.jobTotals))
    const candidates = ids.filter((_, index) => countJobs(totals[index], 'Running') > 0)
    for (const organisationId of candidates) if (await isJobRunningIn(organisationId)) return true
    if (organisationPage.next === undefined) return false
    after = organisationPage.next
  }
  return true
}

/** Checks the job records: the totals lag and may still count an ended update, which must not block a rollback. */
async function isJobRunningIn(organisationId: string): Promise<boolean> {
  const range = { index: 'gsi3', pk: keys.organisationJobs(organisationId, 'Running') } as const
  const jobKeys = await indexedKeys({ ...range, newestFirst: true, limit: candidateLimit })
  if (jobKeys.length === candidateLimit) return true
  const jobs = jobKeys.length === 0 ? [] : await getMany(jobKeys)
  return jobs.some((job) => job?.['status'] === 'Running')
}
