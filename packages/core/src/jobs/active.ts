import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { indexedKeys } from '../db/index-page.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'

/** With more organisations than this, the check assumes that a job is running. */
const organisationLimit = 20_000
const pageSize = 1000

/** If an organisation has this many queued and running jobs, the check assumes that one is running. */
const candidateLimit = 1000

/**
 * Includes operations. Selects organisations by their job totals, which may count a running job as queued (see
 * start.ts), and those with recent changes, which the totals may not contain yet.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let count = 0; count < limit; count += pageSize) {
    const organisationPage = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const ids = organisationPage.items.map(({ sk }) => String(sk))
    const [totals, checks] = await Promise.all([
      getMany(ids.map(keys.organisationCounts)),
      getMany(ids.map(keys.outboxCheck)),
    ])
    const candidates = ids.filter((_, index) => mayRunJobs(totals[index]) || isScheduled(checks[index]))
    for (const organisationId of candidates) if (await isJobRunningIn(organisationId)) return true
    if (organisationPage.next === undefined) return false
    after = organisationPage.next
  }
  return true
}

const mayRunJobs = (totals: Item | undefined): boolean => countJobs(totals, 'Queued') + countJobs(totals, 'Running') > 0

const isScheduled = (outboxCheck: Item | undefined): boolean => outboxCheck?.['duesk'] !== undefined

/** Reads the records, because the totals may still count a finished update, which must not block a rollback. */
async function isJobRunningIn(organisationId: string): Promise<boolean> {
  const range = { index: 'gsi3', pk: keys.activeJobsOf(organisationId) } as const
  const jobKeys = await indexedKeys({ ...range, limit: candidateLimit })
  if (jobKeys.length === candidateLimit) return true
  const jobs = jobKeys.length === 0 ? [] : await getMany(jobKeys)
  return jobs.some((job) => job?.['status'] === 'Running')
}
