import * as Audit from '@platform/core/audit/audit'
import { parseCluster } from '@platform/core/clusters/record'
import * as keys from '@platform/core/db/keys'
import type { Item } from '@platform/core/db/table'
import { countsOf, parseBatch } from '@platform/core/jobs/batches/record'
import { listedIn } from '@platform/core/jobs/inbox'
import { countJobs } from '@platform/core/jobs/totals-projection'
import * as Notification from '@platform/core/notifications/notification'
import { unreadCount } from '@platform/core/notifications/unread'
import { countByStatus } from '../../core/support/batches.ts'
import type { Tenant } from './tenant.ts'

/**
 * Recounts the items of the table and compares them with the platform's own counts. Each function returns the
 * differences.
 */

type Difference = (tenant: Tenant, ownItems: readonly Item[], items: readonly Item[]) => string[] | Promise<string[]>

const jobsOf = (ownItems: readonly Item[]): Item[] => ownItems.filter(({ sk }) => String(sk).startsWith('JOB#'))
const endsWith =
  (suffix: string) =>
  ({ pk }: Item) =>
    String(pk).endsWith(suffix)
const withStatus = (jobs: readonly Item[], ...statuses: string[]): Item[] =>
  jobs.filter(({ status }) => statuses.includes(String(status)))

const difference = (name: string, counted: unknown, recounted: unknown): string[] =>
  String(counted) === String(recounted) ? [] : [`${name}: ${String(counted)}, recounted ${String(recounted)}`]

const clusters: Difference = ({ clusters, idle }, ownItems, items) =>
  [...clusters, idle].flatMap(({ cluster: { id } }) => {
    const record = items.find((item) => endsWith('#CLUSTER')(item) && item['sk'] === id)
    const jobs = jobsOf(ownItems).filter(({ clusterId }) => clusterId === id)
    const listed = record === undefined ? 0 : listedIn(parseCluster(record)).length
    const inbox = items.filter(({ pk }) => pk === `CLUSTER#${id}#INBOX`).length + listed
    const dispatchedCount = withStatus(jobs, 'Queued').filter(({ isThrottled }) => isThrottled === undefined).length
    const countedJobs = [
      record?.['jobs'] ?? 0,
      record?.['activeJobs'],
      Number(record?.['waitingJobs'] ?? 0) + listed,
      dispatchedCount,
    ]
    return difference(id, countedJobs, [jobs.length, withStatus(jobs, 'Queued', 'Running').length, inbox, inbox])
  })

const runs: Difference = ({ runs, toRun }) => [
  ...[...runs].flatMap(([id, times]) => difference(`runs of ${id}`, times, 1)),
  ...difference('jobs that ran', runs.size, toRun),
]

const batches: Difference = ({ batchIds, caller: { organisationId } }, ownItems) =>
  batchIds.flatMap((id) => {
    const key = keys.batch(organisationId, id)
    const record = ownItems.find(({ pk, sk }) => pk === key.pk && sk === key.sk)
    if (record === undefined) return [`${id} is missing`]
    const batch = parseBatch(record)
    const jobs = jobsOf(ownItems).filter(({ batchId }) => batchId === id)
    const recountedStatuses = countByStatus(jobs.map(({ status }) => ({ status: String(status) })))
    const counted: Record<string, number> = { ...countsOf(batch) }
    return [
      ...Object.keys(recountedStatuses).flatMap((status) =>
        difference(`${id} ${status}`, counted[status], recountedStatuses[status]),
      ),
      ...difference(`jobs of ${id}`, batch.submittedCount, jobs.length),
      ...(batch.finishedAtMs === undefined ? [`${id} has not ended`] : []),
    ]
  })

const totals: Difference = (_, ownItems) => {
  const [record, jobs] = [ownItems.find(({ sk }) => sk === 'COUNTS'), jobsOf(ownItems)]
  const statuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const
  return [
    ...difference('all jobs', countJobs(record), jobs.length),
    ...statuses.flatMap((status) => difference(status, countJobs(record, status), withStatus(jobs, status).length)),
  ]
}

const history: Difference = (_, ownItems) => {
  const buckets = ownItems.filter((item) => endsWith('#HISTORY')(item) && String(item['sk']).startsWith('JOBS#'))
  const current = ownItems.find(({ sk }) => sk === 'COUNTS')
  const sum = (name: string) =>
    buckets.reduce((total, bucket) => total + Number(bucket[name] ?? 0), Number(current?.[`history ${name}`] ?? 0))
  return [
    ...difference('submitted', sum('submitted'), jobsOf(ownItems).length),
    ...['Completed', 'Failed', 'Cancelled'].flatMap((status) =>
      difference(status, sum(status.toLowerCase()), withStatus(jobsOf(ownItems), status).length),
    ),
  ]
}

const audit: Difference = async ({ caller, audited }, ownItems) => {
  const entries = ownItems.filter(endsWith('#AUDIT'))
  const byAction = Map.groupBy(entries, ({ gsi2pk }) => String(gsi2pk).split('#').at(-1) ?? '')
  const actions = [...new Set([...byAction.keys(), ...Object.keys(audited)])]
  const isValid: boolean[] = []
  for (let after: number | undefined = 0; after !== undefined;) {
    const part: Awaited<ReturnType<typeof Audit.verify>> = await Audit.verify(caller, { after })
    isValid.push(part.valid)
    after = part.valid ? part.next : undefined
  }
  return [
    ...actions.flatMap((action) => difference(action, byAction.get(action)?.length ?? 0, audited[action] ?? 0)),
    ...(isValid.every(Boolean) ? [] : ['the chain is broken']),
  ]
}

const notifications: Difference = async ({ caller, batchIds }, ownItems) => {
  const failedJobs = withStatus(jobsOf(ownItems), 'Failed').filter(({ batchId }) => batchId === undefined)
  const { entries } = await Notification.readFeed(caller)
  const details = new Map(ownItems.filter(endsWith('#NOTIFICATION')).map((item) => [item['sk'], item]))
  const resources = entries
    .map(({ id }) => details.get(id))
    .filter((detail) => detail?.['type'] === 'JobFailed' || detail?.['type'] === 'BatchFinished')
    .map((detail) => String(detail?.['resource']))
  return [
    ...difference(
      'notifications',
      resources.toSorted(),
      [...failedJobs.map(({ id }) => String(id)), ...batchIds].toSorted(),
    ),
    ...difference('unread', await unreadCount(caller), entries.length),
  ]
}

const outbox: Difference = (_, ownItems) => ownItems.filter(endsWith('#OUTBOX')).map(({ sk }) => String(sk))

export const differences: Readonly<Record<string, Difference>> = {
  'clusters with wrong counters (jobs, active, waiting)': clusters,
  'jobs that were dispatched twice or never': runs,
  'batches that were not expanded once or have wrong counts': batches,
  'wrong job totals': totals,
  'wrong counts of the history': history,
  'audit entries that are missing or duplicated, and broken chains': audit,
  'notifications that are missing or duplicated, and wrong unread counts': notifications,
  'outbox records without projections': outbox,
}
