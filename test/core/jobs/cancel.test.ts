import { type Caller, system } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { finishQueued, requestCancel, requestCancelAll } from '@platform/core/jobs/cancel'
import { claim, findOwnJob } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, expectError } from '../../support/fixtures.ts'
import { beforeCommand, maxConcurrentTransactions, onStoreCall } from '../../support/store-calls.ts'
import {
  completionReport,
  dispatchedJob,
  inboxItems,
  jobCounters,
  runningJob,
  scriptJob,
  waitingJob,
} from '../support/jobs.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const auditActions = async ({ organisationId }: Caller, jobId: string) =>
  (await pendingRecords(organisationId)).flatMap(({ audit }) => (audit?.resource === jobId ? [audit.action] : []))

test('a cancelled job leaves the inbox and the due index', async () => {
  const { caller, enrolled, jobId, key } = await waitingJob()
  expect(await inboxItems(enrolled.cluster.id)).toEqual([jobId])
  await Job.cancel(caller, jobId)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  const item = await get(key)
  expect([item?.['duepk'], item?.['duesk']]).toEqual([undefined, undefined])
  expect(await auditActions(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('a job that the platform ends has no audit entry of its end', async () => {
  const { caller, jobId, record } = await waitingJob()
  const job = await record()
  const end = { status: 'Failed', statusReason: 'delivery_timeout' } as const
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(true)
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(false)
  expect(await auditActions(caller, jobId)).toEqual(['job.submit'])
  expect(await Job.read(caller, jobId)).toMatchObject(end)
})

test.each([
  ['waiting', waitingJob],
  ['running', runningJob],
])('stores the idempotent response of cancelling a %s job', async (_, createJob) => {
  const { caller, jobId } = await createJob()
  const idempotency = { key: newId('job'), fingerprint: 'one', status: 200 }
  const response = await Job.cancel({ ...caller, idempotency }, jobId)
  expect(await findStoredResponse(caller, idempotency)).toEqual({ status: 200, body: response })
})

test('requests cancellation of a running job once', async () => {
  const { caller, jobId, key } = await runningJob()
  const { cancelRequestedAt } = await Job.cancel(caller, jobId)
  const dueInMs = keys.dueTimeOf(String((await get(key))?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(30_000)
  expect(dueInMs).toBeLessThanOrEqual(60_000)
  const repeat = async () => expect(await Job.cancel(caller, jobId)).toMatchObject({ cancelRequestedAt })
  expect(await maxConcurrentTransactions(repeat)).toBe(0)
  expect(await auditActions(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('requests cancellation of a job that is claimed concurrently', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const isClaimed = beforeCommand(/^TransactWrite/, () => claim(enrolled.request(), jobId, undefined))
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Running', cancelRequestedAt: expect.any(String) })
  expect(isClaimed()).toBe(true)
  const { response } = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId] })
  expect(response.cancel).toEqual([jobId])
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test('removes a job from the inbox that is dispatched during its cancellation', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { id: jobId } = await Job.submit(caller, scriptJob(enrolled.cluster.id))
  const { organisationId } = caller
  const isDispatched = beforeCommand(/^TransactWrite/, () => dispatch({ organisationId, jobId }))
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Cancelled' })
  expect(isDispatched()).toBe(true)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('rejects cancelling a job that ends concurrently', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  const isEnded = beforeCommand(/^TransactWrite/, () => complete(enrolled.request(), jobId, report))
  await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  expect(isEnded()).toBe(true)
  const job = await Job.read(caller, jobId)
  expect(job).toMatchObject({ status: 'Completed' })
  expect(job).not.toHaveProperty('cancelRequestedAt')
  expect(await auditActions(caller, jobId)).toEqual(['job.submit'])
})

test('fails after five conflicting changes and leaves the job unchanged', async () => {
  const { caller, jobId, key } = await waitingJob()
  let attempts = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (!command.startsWith('TransactWrite')) return
        await update(key, attempts++ % 2 === 0 ? { remove: ['dispatchedAtMs'] } : { set: { dispatchedAtMs: 1 } })
      },
    })
    await expectError(Job.cancel(caller, jobId), 'conflict')
  }
  expect(attempts).toBe(5)
  expect((await Job.read(caller, jobId)).status).toBe('Queued')
})

test('requests cancellation of several jobs, all or none', async () => {
  const { caller, enrolled, jobId } = await runningJob()
  const secondId = await dispatchedJob(caller, enrolled)
  await claim(enrolled.request(), secondId, undefined)
  const [first, second] = [await findOwnJob(enrolled.request(), jobId), await findOwnJob(enrolled.request(), secondId)]
  expect(await requestCancel(caller, second)).toBe(true)
  expect(await requestCancelAll([first, second])).toBe(false)
  expect(await Job.read(caller, jobId)).not.toHaveProperty('cancelRequestedAt')
  expect(await requestCancelAll([first])).toBe(true)
  const { response } = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId, secondId] })
  expect(response.cancel.toSorted()).toEqual([jobId, secondId].toSorted())
  expect(await requestCancel(caller, first)).toBe(false)
})

test('cancels a job of a batch that is not expanded yet', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobs = [scriptJob(enrolled.cluster.id), scriptJob(enrolled.cluster.id)]
  const { jobIds } = await Batch.submit(caller, { jobs })
  const [first = '', second = ''] = jobIds
  expect(await get(keys.job(caller.organisationId, first))).toBeUndefined()
  expect(await Job.cancel(caller, first)).toMatchObject({ id: first, status: 'Cancelled' })
  expect(await Job.read(caller, first)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  expect(await Job.read(caller, second)).toMatchObject({ status: 'Queued' })
})
