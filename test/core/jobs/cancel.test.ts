import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller, system } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { dispatch } from '@platform/core/jobs/dispatch'
import { requestCancelAll, requestCancel, finishQueued } from '@platform/core/jobs/cancel'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { parseJob } from '@platform/core/jobs/record'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { onStoreCall, beforeCommand } from '../../support/store-calls.ts'
import {
  newCaller,
  enrolledCluster,
  bootstrapPlatform,
  callerWithCluster,
  expectError,
} from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import {
  completionReport,
  jobCounters,
  inboxItems,
  scriptJob,
  dispatchedJob,
  waitingJob,
  runningJob,
} from '../support/jobs.ts'

/** Ends and requests to stop, also where somebody else is faster. */

beforeAll(bootstrapPlatform)

const rowOf = ({ organisationId }: Caller, jobId: string) => get(keys.job(organisationId, jobId))

const auditsOf = async ({ organisationId }: Caller, jobId: string) =>
  (await pendingRecords(organisationId)).flatMap(({ audit }) => (audit?.resource === jobId ? [audit.action] : []))

/** Every transaction meanwhile. */
async function transactionsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (command.startsWith('TransactWrite')) count++
    },
  })
  await work()
  return count
}

test('a cancelled job waits nowhere any more: neither in the inbox, nor for the sweep', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  expect(await inboxItems(enrolled.cluster.id)).toEqual([jobId])
  await Job.cancel(caller, jobId)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  const row = await rowOf(caller, jobId)
  expect([row?.['duepk'], row?.['duesk']]).toEqual([undefined, undefined])
  expect(await auditsOf(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('what the platform ends by itself is nobody’s deed in the trail', async () => {
  const { caller, jobId } = await waitingJob()
  const job = parseJob((await rowOf(caller, jobId))!)
  const end = { status: 'Failed', statusReason: 'delivery_timeout' } as const
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(true)
  expect(await finishQueued(system(caller.organisationId), [job], end)).toBe(false)
  expect(await auditsOf(caller, jobId)).toEqual(['job.submit'])
  expect(await Job.read(caller, jobId)).toMatchObject(end)
})

/** A caller whose request may be repeated. */
function repeatable(caller: Caller) {
  const request = { key: newId('job'), fingerprint: 'one', status: 200 }
  return {
    caller: { ...caller, idempotency: request },
    kept: () => findStoredResponse(caller, request),
  }
}

test.each([
  ['waits', waitingJob],
  ['runs', runningJob],
])('the answer to the cancellation of a job that %s is kept with it, for who repeats the request', async (_, make) => {
  const { caller, jobId } = await make()
  const twice = repeatable(caller)
  const answer = await Job.cancel(twice.caller, jobId)
  expect(await twice.kept()).toEqual({ status: 200, body: answer })
})

test('a running job is asked to stop once, however often that is wanted, and its trail tells so', async () => {
  const { caller, jobId } = await runningJob()
  const first = await Job.cancel(caller, jobId)
  const row = await rowOf(caller, jobId)
  const dueInMs = keys.dueTimeOf(String(row?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(30_000)
  expect(dueInMs).toBeLessThanOrEqual(60_000)
  expect(await transactionsOf(() => Job.cancel(caller, jobId))).toBe(0)
  expect((await Job.cancel(caller, jobId)).cancelRequestedAt).toBe(first.cancelRequestedAt)
  expect(await auditsOf(caller, jobId)).toEqual(['job.submit', 'job.cancel'])
})

test('a job that is claimed while it is cancelled is asked to stop instead', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const isClaimed = beforeCommand(/^TransactWrite/, () => claim(enrolled.request(), jobId, undefined))
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Running', cancelRequestedAt: expect.any(String) })
  expect(isClaimed()).toBe(true)
  expect((await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId] })).response.cancel).toEqual([
    jobId,
  ])
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test('a job that is dispatched while it is cancelled leaves nothing in the inbox', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { id: jobId } = await Job.submit(caller, scriptJob(enrolled.cluster.id))
  const { organisationId } = caller
  const isDispatched = beforeCommand(/^TransactWrite/, () => dispatch({ organisationId, jobId }))
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Cancelled' })
  expect(isDispatched()).toBe(true)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('a job that ends while it is asked to stop has ended as it did', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const isEnded = beforeCommand(/^TransactWrite/, () =>
    complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)),
  )
  await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  expect(isEnded()).toBe(true)
  const job = await Job.read(caller, jobId)
  expect(job).toMatchObject({ status: 'Completed' })
  expect(job).not.toHaveProperty('cancelRequestedAt')
  expect(await auditsOf(caller, jobId)).toEqual(['job.submit'])
})

test('a job that is never as it was just read is left as it is after five tries', async () => {
  const { caller, jobId } = await waitingJob()
  let tries = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (!command.startsWith('TransactWrite')) return
        const change = tries++ % 2 === 0 ? { remove: ['dispatchedAtMs'] } : { set: { dispatchedAtMs: 1 } }
        await update(keys.job(caller.organisationId, jobId), change)
      },
    })
    await expectError(Job.cancel(caller, jobId), 'conflict')
  }
  expect(tries).toBe(5)
  expect((await Job.read(caller, jobId)).status).toBe('Queued')
})

test('many are asked to stop at once, all or none', async () => {
  const { caller, enrolled, jobId } = await runningJob()
  const second = await dispatchedJob(caller, enrolled)
  await claim(enrolled.request(), second, undefined)
  const jobs = [parseJob((await rowOf(caller, jobId))!), parseJob((await rowOf(caller, second))!)]
  expect(await requestCancel(caller, jobs[1]!)).toBe(true)
  expect(await requestCancelAll(jobs)).toBe(false)
  expect(await Job.read(caller, jobId)).not.toHaveProperty('cancelRequestedAt')
  expect(await requestCancelAll(jobs.slice(0, 1))).toBe(true)
  const { response } = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId, second] })
  expect(response.cancel.toSorted()).toEqual([jobId, second].toSorted())
  expect(await requestCancel(caller, jobs[0]!)).toBe(false)
})

test('a job that stands in its batch only is cancelled like any other', async () => {
  const caller = await newCaller()
  const { cluster } = await enrolledCluster(caller)
  const { jobIds } = await Batch.submit(caller, { jobs: [scriptJob(cluster.id), scriptJob(cluster.id)] })
  const [first = '', second = ''] = jobIds
  expect(await rowOf(caller, first)).toBeUndefined()
  expect(await Job.cancel(caller, first)).toMatchObject({ id: first, status: 'Cancelled' })
  expect(await Job.read(caller, first)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  expect(await Job.read(caller, second)).toMatchObject({ status: 'Queued' })
})
