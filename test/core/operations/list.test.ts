import { type JobStatus, jobStatuses, jobTypes } from '@platform/contract/job'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { type JobFilter, list } from '@platform/core/jobs/list'
import { operationTypes } from '@platform/core/operations/record'
import { expect, test } from 'vitest'
import { bootstrapPlatform, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { runProjections } from '../support/batches.ts'
import { dispatchedJob, type EnrolledCluster, runJob, scriptJob } from '../support/jobs.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'
import { measureUsage } from '../support/usage.ts'

await bootstrapPlatform()

interface ExpectedJob {
  id: string
  type: (typeof jobTypes)[number]
  status: JobStatus
  clusterId: string | undefined
}

/** Creates scripts and operations alternately, in all statuses that they can have. */
async function createHistory(caller: Caller, enrolled: EnrolledCluster): Promise<ExpectedJob[]> {
  const history: ExpectedJob[] = []
  for (let round = 0; round < 6; round++) {
    const jobId = await dispatchedJob(caller, enrolled)
    const jobStatus = round % 2 === 0 ? 'Completed' : 'Queued'
    if (jobStatus === 'Completed') await runJob(enrolled, jobId)
    history.push({ id: jobId, type: 'InvokeScript', status: jobStatus, clusterId: enrolled.cluster.id })
    const type = operationTypes[round % 2]!
    const operation = await pendingOperation(caller, type)
    const status = (['Queued', 'Running', 'Completed', 'Failed'] as const)[round % 4]!
    const worker = status === 'Queued' ? undefined : await claimed(operation)
    if (worker && status !== 'Running' && status !== 'Queued') await finishOperation(worker, { status, outcome: '' })
    history.push({ id: operation.id, type, status, clusterId: undefined })
  }
  await runProjections(caller)
  return history.toSorted((a, b) => (a.id < b.id ? 1 : -1))
}

const caller = await newCaller()
const enrolled = await enrolledCluster(caller)
const history = await createHistory(caller, enrolled)

const filters: JobFilter[] = [undefined, enrolled.cluster.id].flatMap((clusterId) =>
  [undefined, ...jobStatuses].flatMap((status) =>
    [undefined, ...jobTypes].map((type) => ({ clusterId, status, type })),
  ),
)

const idsOf = ({ clusterId, status, type }: JobFilter): string[] =>
  history
    .filter((job) => (clusterId === undefined || job.clusterId === clusterId) && (status ?? job.status) === job.status)
    .filter((job) => (type ?? job.type) === job.type)
    .map(({ id }) => id)

test('scripts and operations are one list, newest first, with exact totals for all filters and pages', async () => {
  for (const filter of filters) {
    const ids = idsOf(filter)
    const all = await list(caller, { ...filter, page: 1, pageSize: 100 })
    expect([filter, all.items.map(({ id }) => id), all.totalCount]).toEqual([filter, ids, ids.length])
    const listed: string[] = []
    for (let page = 1; page <= Math.ceil(ids.length / 2) + 1; page++) {
      const { items, totalCount } = await list(caller, { ...filter, page, pageSize: 2 })
      expect([filter, page, totalCount]).toEqual([filter, page, ids.length])
      listed.push(...items.map(({ id }) => id))
    }
    expect([filter, listed]).toEqual([filter, ids])
  }
})

test('a list item is part of the job; operations have no cluster', async () => {
  const { items } = await list(caller, { page: 1, pageSize: 100 })
  for (const item of items) {
    expect(await Job.read(caller, item.id)).toMatchObject(item)
    expect('clusterId' in item).toBe(item.type === 'InvokeScript')
  }
})

test('totals count operations with all jobs, and separately', async () => {
  const count = (matches: (job: ExpectedJob) => boolean) => history.filter(matches).length
  expect(await get(keys.jobTotals(caller.organisationId))).toMatchObject({
    total: history.length,
    'operations total': count(({ type }) => type !== 'InvokeScript'),
    Running: count(({ status }) => status === 'Running'),
    'operations Completed': count(({ type, status }) => type !== 'InvokeScript' && status === 'Completed'),
  })
})

test('jobs that are not projected yet are counted as far as they are listed', async () => {
  const tenant = await newCaller()
  await pendingOperation(tenant)
  const { cluster } = await enrolledCluster(tenant)
  for (let job = 0; job < 3; job++) await Job.submit(tenant, scriptJob(cluster.id))
  const first = await list(tenant, { type: 'InvokeScript', page: 1, pageSize: 2 })
  expect([first.items.length, first.totalCount]).toEqual([2, 2])
  expect(await list(tenant, { type: 'InvokeScript', page: 2, pageSize: 2 })).toMatchObject({ totalCount: 3 })
})

test('a page of one type takes few calls, with and without operations', async () => {
  const countCalls = async (user: Caller, filter: JobFilter) =>
    (await measureUsage(() => list(user, { ...filter, page: 1, pageSize: 20 }))).usage.calls.length
  const tenant = await newCaller()
  const { cluster } = await enrolledCluster(tenant)
  await Job.submit(tenant, scriptJob(cluster.id))
  await runProjections(tenant)
  expect(await countCalls(caller, {})).toBe(3)
  expect(await countCalls(caller, { type: 'ModuleInstall' })).toBe(2)
  expect(await countCalls(caller, { type: 'ModuleInstall', status: 'Completed' })).toBe(2)
  expect(await countCalls(caller, { type: 'InvokeScript' })).toBe(7)
  expect(await countCalls(tenant, { type: 'InvokeScript' })).toBe(7)
})
