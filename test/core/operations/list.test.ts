import { expect, test } from 'vitest'
import { type JobStatus, jobStatuses, jobTypes } from '@platform/contract/job'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { type JobFilter, list } from '@platform/core/jobs/list'
import { operationTypes } from '@platform/core/operations/record'
import { measureUsage } from '../support/usage.ts'
import { newCaller, enrolledCluster, bootstrapPlatform } from '../../support/fixtures.ts'
import { runProjections } from '../support/batches.ts'
import { runJob, scriptJob, dispatchedJob, type EnrolledCluster } from '../support/jobs.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'

await bootstrapPlatform()

interface Known {
  id: string
  type: (typeof jobTypes)[number]
  status: JobStatus
  clusterId: string | undefined
}

/** Scripts and operations by turns, in every status that they can have. */
async function history(caller: Caller, enrolled: EnrolledCluster): Promise<Known[]> {
  const known: Known[] = []
  for (let round = 0; round < 6; round++) {
    const jobId = await dispatchedJob(caller, enrolled)
    const status = round % 2 === 0 ? 'Completed' : 'Queued'
    if (status === 'Completed') await runJob(enrolled, jobId)
    known.push({ id: jobId, type: 'InvokeScript', status, clusterId: enrolled.cluster.id })
    const type = operationTypes[round % 2] ?? 'ModuleInstall'
    const operation = await pendingOperation(caller, type)
    const end = (['Queued', 'Running', 'Completed', 'Failed'] as const)[round % 4] ?? 'Queued'
    const worker = end === 'Queued' ? undefined : await claimed(operation)
    if (worker && end !== 'Running' && end !== 'Queued') await finishOperation(worker, { status: end, outcome: '' })
    known.push({ id: operation.id, type, status: end, clusterId: undefined })
  }
  await runProjections(caller)
  return known.toSorted((a, b) => (a.id < b.id ? 1 : -1))
}

const caller = await newCaller()
const enrolled = await enrolledCluster(caller)
const known = await history(caller, enrolled)

const filters: JobFilter[] = [undefined, enrolled.cluster.id].flatMap((clusterId) =>
  [undefined, ...jobStatuses].flatMap((status) =>
    [undefined, ...jobTypes].map((type) => ({ clusterId, status, type })),
  ),
)

const expected = ({ clusterId, status, type }: JobFilter): string[] =>
  known
    .filter((job) => (clusterId === undefined || job.clusterId === clusterId) && (status ?? job.status) === job.status)
    .filter((job) => (type ?? job.type) === job.type)
    .map(({ id }) => id)

test('scripts and operations are one list, newest first, by every filter, and counted so', async () => {
  for (const filter of filters) {
    const { items, totalCount } = await list(caller, { ...filter, page: 1, pageSize: 100 })
    const ids = expected(filter)
    expect([filter, items.map(({ id }) => id), totalCount]).toEqual([filter, ids, ids.length])
  }
})

test('every page of every filter holds what is next, and no job twice', async () => {
  for (const filter of filters) {
    const ids = expected(filter)
    const shown: string[] = []
    for (let page = 1; page <= Math.ceil(ids.length / 2) + 1; page++) {
      const { items, totalCount } = await list(caller, { ...filter, page, pageSize: 2 })
      expect([filter, page, totalCount]).toEqual([filter, page, ids.length])
      shown.push(...items.map(({ id }) => id))
    }
    expect([filter, shown]).toEqual([filter, ids])
  }
})

test('a summary tells what the job itself tells, of an operation without a cluster', async () => {
  const { items } = await list(caller, { page: 1, pageSize: 100 })
  for (const summary of items) {
    expect(await Job.read(caller, summary.id)).toMatchObject(summary)
    expect('clusterId' in summary).toBe(summary.type === 'InvokeScript')
  }
})

test('totals count operations among all jobs, and apart', async () => {
  const item = await get(keys.jobTotals(caller.organisationId))
  const of = (type: (job: Known) => boolean) => known.filter(type).length
  expect(item).toMatchObject({
    total: known.length,
    'operations total': of(({ type }) => type !== 'InvokeScript'),
    Running: of(({ status }) => status === 'Running'),
    'operations Completed': of(({ type, status }) => type !== 'InvokeScript' && status === 'Completed'),
  })
})

test('what the totals do not know yet is counted as far as it shows', async () => {
  const busy = await newCaller()
  await pendingOperation(busy)
  const { cluster } = await enrolledCluster(busy)
  for (let job = 0; job < 3; job++) await Job.submit(busy, scriptJob(cluster.id))
  const first = await list(busy, { type: 'InvokeScript', page: 1, pageSize: 2 })
  expect([first.items.length, first.totalCount]).toEqual([2, 2])
  expect(await list(busy, { type: 'InvokeScript', page: 2, pageSize: 2 })).toMatchObject({ totalCount: 3 })
})

const callsOf = async (who: Caller, filter: JobFilter) =>
  (await measureUsage(() => list(who, { ...filter, page: 1, pageSize: 20 }))).usage.calls.length

test('a page of one type takes few calls, and as many where there are no operations at all', async () => {
  const tenant = await newCaller()
  const { cluster } = await enrolledCluster(tenant)
  await Job.submit(tenant, scriptJob(cluster.id))
  await runProjections(tenant)
  expect(await callsOf(caller, {})).toBe(3)
  expect(await callsOf(caller, { type: 'ModuleInstall' })).toBe(2)
  expect(await callsOf(caller, { type: 'ModuleInstall', status: 'Completed' })).toBe(2)
  expect(await callsOf(caller, { type: 'InvokeScript' })).toBe(7)
  expect(await callsOf(tenant, { type: 'InvokeScript' })).toBe(7)
})
