import * as Audit from '@platform/core/audit/audit'
import { countsOf, parseBatch } from '@platform/core/jobs/batches/record'
import { type Item } from '@platform/core/db/table'
import { countJobs } from '@platform/core/jobs/totals-projection'
import * as Notification from '@platform/core/notifications/notification'
import { unreadCount } from '@platform/core/notifications/unread'
import { tallyOf } from '../../test/core/support/batches.ts'
import { type Tenant } from './tenant.ts'

/** What the rows of the table say, counted anew, against what the platform has counted on the way. */

/** How far an organisation is off; all of them 0 where everything happened once. */
export interface Drift {
  /** Clusters whose counters are not the number of their jobs, active jobs, and jobs in the inbox. */
  clusters: number
  /** Jobs that were run twice, or never although they should. */
  runs: number
  /** Batches that are not what their jobs are, or have not ended. */
  batches: number
  /** Statuses whose total is not the number of jobs. */
  totals: number
  /** Kinds of what a quarter of an hour has seen that are not the number of jobs. */
  history: number
  /** Audit entries that are too many or too few, by action; 1 more where the chain is broken. */
  audit: number
  /** Jobs and batches that nobody was told of, or twice. */
  notifications: number
  /** Records that nobody has booked, or that were set aside. */
  unbooked: number
}

const statuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const
const countNames = ['queued', 'running', 'completed', 'failed', 'cancelled'] as const

/** Compares one organisation; `rows` are those of the whole table. */
export async function driftOf(tenant: Tenant, rows: readonly Item[]): Promise<Drift> {
  const { organisationId } = tenant.caller
  const own = rows.filter(({ pk }) => String(pk).includes(organisationId))
  const jobs = own.filter(({ sk }) => sk === 'JOB')
  return {
    clusters: clusterDrift(tenant, rows, jobs),
    runs: [...tenant.runs.values()].filter((times) => times !== 1).length + Math.abs(tenant.toRun - tenant.runs.size),
    batches: batchDrift(tenant, own, jobs),
    totals: totalDrift(own, jobs),
    history: historyDrift(own, jobs),
    audit: await auditDrift(tenant, own),
    notifications: await notificationDrift(tenant, own, jobs),
    unbooked: own.filter(({ pk }) => String(pk).endsWith('#OUTBOX')).length,
  }
}

const countOf = (jobs: readonly Item[], ...wanted: string[]): number =>
  jobs.filter(({ status }) => wanted.includes(String(status))).length

function clusterDrift({ worlds, idle }: Tenant, rows: readonly Item[], jobs: readonly Item[]): number {
  return [...worlds, idle].filter(({ cluster: { id } }) => {
    const row = rows.find(({ pk, sk }) => String(pk).endsWith('#CLUSTER') && sk === id)
    const mine = jobs.filter(({ clusterId }) => clusterId === id)
    const inbox = rows.filter(({ pk }) => pk === `CLUSTER#${id}#INBOX`).length
    const dispatched = mine.filter(({ status, dispatchedAtMs }) => status === 'Queued' && dispatchedAtMs !== undefined)
    const recounted = [mine.length, countOf(mine, 'Queued', 'Running'), inbox]
    const counted = [Number(row?.['jobs'] ?? 0), row?.['activeJobs'], row?.['waitingJobs']]
    return String(recounted) !== String(counted) || dispatched.length !== inbox
  }).length
}

function batchDrift({ batchIds }: Tenant, own: readonly Item[], jobs: readonly Item[]): number {
  return batchIds.filter((id) => {
    const row = own.find(({ pk, sk }) => String(pk).endsWith(`#BATCH#${id}`) && sk === 'BATCH')
    const mine = jobs.filter(({ batchId }) => batchId === id).map(({ status }) => ({ status: String(status) }))
    if (row === undefined) return true
    const batch = parseBatch(row)
    const [counted, recounted] = [countsOf(batch), tallyOf(mine)]
    const isCounted = countNames.every((name) => counted[name] === recounted[name])
    return !isCounted || mine.length !== batch.submittedCount || batch.finishedAtMs === undefined
  }).length
}

function totalDrift(own: readonly Item[], jobs: readonly Item[]): number {
  const totals = own.find(({ sk }) => sk === 'JOB-TOTALS')
  const wrong = statuses.filter((status) => countJobs(totals, status) !== countOf(jobs, status)).length
  return wrong + (countJobs(totals) === jobs.length ? 0 : 1)
}

function historyDrift(own: readonly Item[], jobs: readonly Item[]): number {
  const slots = own.filter(({ pk, sk }) => String(pk).endsWith('#HISTORY') && String(sk).startsWith('JOBS#'))
  const sum = (name: string) => slots.reduce((total, slot) => total + Number(slot[name] ?? 0), 0)
  const ends = ['Completed', 'Failed', 'Cancelled'] as const
  const wrong = ends.filter((status) => sum(status.toLowerCase()) !== countOf(jobs, status)).length
  return wrong + (sum('submitted') === jobs.length ? 0 : 1)
}

async function auditDrift({ caller, audited }: Tenant, own: readonly Item[]): Promise<number> {
  const entries = own.filter(({ pk }) => String(pk).endsWith('#AUDIT'))
  const byAction = Map.groupBy(entries, ({ gsi2pk }) => String(gsi2pk).split('#').at(-1) ?? '')
  const actions = new Set([...byAction.keys(), ...Object.keys(audited)])
  const wrong = [...actions].filter((action) => (byAction.get(action)?.length ?? 0) !== (audited[action] ?? 0))
  return wrong.length + ((await isChainWhole(caller)) ? 0 : 1)
}

/** The whole chain, part by part. */
async function isChainWhole(caller: Tenant['caller']): Promise<boolean> {
  for (let after: number | undefined = 0; after !== undefined;) {
    const part: Awaited<ReturnType<typeof Audit.verify>> = await Audit.verify(caller, { after })
    if (!part.valid) return false
    after = part.next
  }
  return true
}

async function notificationDrift(
  { caller, batchIds }: Tenant,
  own: readonly Item[],
  jobs: readonly Item[],
): Promise<number> {
  const failed = jobs.filter(({ status, batchId }) => status === 'Failed' && batchId === undefined)
  const expected = [...failed.map(({ id }) => String(id)), ...batchIds].toSorted()
  const { entries } = await Notification.readFeed(caller)
  const said = new Map(own.filter(({ pk }) => String(pk).endsWith('#NOTIFICATION')).map((row) => [row['sk'], row]))
  const told = entries
    .map(({ id }) => said.get(id))
    .filter((detail) => detail?.['type'] === 'JobFailed' || detail?.['type'] === 'BatchFinished')
    .map((detail) => String(detail?.['resource']))
    .toSorted()
  const missing = expected.filter((resource) => !told.includes(resource)).length
  const isCounted = (await unreadCount(caller)) === entries.length
  return missing + Math.abs(told.length - expected.length) + (isCounted ? 0 : 1)
}
