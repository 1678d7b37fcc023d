import * as keys from '../db/keys.ts'
import { getMany, type Item, query } from '../db/table.ts'
import { indexedKeys } from '../db/index-page.ts'
import { chunk } from '../lib/async.ts'
import { countJobs } from './totals-projection.ts'
import { organisations } from '../accounts/organisation.ts'

/** If there are more organisations than this, the check assumes that a job is running. */
const organisationLimit = 20_000
const pageSize = 1000

/**
 * At most this many queued and running jobs are read per organisation. If the limit is reached and the totals contain a
 * running job, the check assumes that a job is running.
 */
const readLimit = 1000

const organisationsPerRead = 50

/**
 * Includes operations. Checks only organisations with queued or running jobs in their totals, which may count a running
 * job as queued (see `start.ts`), and organisations with recent changes, which the totals may not contain yet.
 */
export async function isAnyJobRunning(limit = organisationLimit): Promise<boolean> {
  let after: Item | undefined
  for (let count = 0; count < limit; count += pageSize) {
    const organisationPage = await query({ pk: organisations.pk, limit: pageSize, ...(after && { after }) })
    const ids = organisationPage.items.map(({ sk }) => String(sk))
    // The outbox checks are read first, because a check is removed only after the totals contain the changes.
    const checks = await getMany(ids.map(keys.outboxCheck))
    const totals = await getMany(ids.map(keys.organisationCounts))
    const candidates = ids
      .map((id, index) => ({ id, totals: totals[index], hasChanges: checks[index]?.['duesk'] !== undefined }))
      .filter((each) => each.hasChanges || countJobs(each.totals, 'Queued') + countJobs(each.totals, 'Running') > 0)
    for (const part of chunk(candidates, organisationsPerRead)) {
      if ((await Promise.all(part.map((each) => isJobRunningIn(each.id, each.totals)))).includes(true)) return true
    }
    if (organisationPage.next === undefined) return false
    after = organisationPage.next
  }
  return true
}

/** Reads the records, because the totals may still count a finished update, which must not block a rollback. */
async function isJobRunningIn(organisationId: string, totals: Item | undefined): Promise<boolean> {
  const range = { index: 'gsi3', pk: keys.activeJobsOf(organisationId) } as const
  const jobKeys = await indexedKeys({ ...range, limit: readLimit })
  if (jobKeys.length === readLimit && countJobs(totals, 'Running') > 0) return true
  const jobs = jobKeys.length === 0 ? [] : await getMany(jobKeys)
  return jobs.some((job) => job?.['status'] === 'Running')
}
