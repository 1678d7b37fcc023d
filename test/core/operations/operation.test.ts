import { eventSchemas } from '@platform/contract/event'
import { Job as JobSchema } from '@platform/contract/job'
import { sweep } from '@platform/core/background/sweep'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { claim } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { readOutput } from '@platform/core/jobs/output'
import * as Operation from '@platform/core/operations/operation'
import { claimOperation, LeaseLost, operationLeaseMs, renewLease } from '@platform/core/operations/operation'
import type { OperationRecord, OperationType, StoredStep } from '@platform/core/operations/record'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { describe, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, enrolledCluster, expectError, newCaller, requestErrorCode } from '../../support/fixtures.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { receiveMessages } from '../support/messages.ts'
import { claimed, finishOperation, pendingOperation, referenceOf } from '../support/operations.ts'
import { readPendingEvents, readPendingRecords } from '../support/outbox.ts'

await bootstrapPlatform()

const minuteMs = 60_000
const anyText = expect.any(String)
const completedEnd = { status: 'Completed', outcome: 'It runs.' } as const
const failedEnd = { status: 'Failed', outcome: 'It does not start.' } as const

async function newOperation() {
  const caller = await newCaller()
  return { caller, operation: await pendingOperation(caller) }
}

const setStep = (operation: OperationRecord, status: StoredStep['status'] = 'Running') =>
  renewLease(
    operation,
    operation.steps.map((step, index) =>
      index === 0 ? { name: step.name, status, message: 'as a process', startedAtMs: now() } : step,
    ),
  )

test('an operation is read as a job with steps and without a cluster', async () => {
  const { caller, operation } = await newOperation()
  expect(await Job.read(caller, operation.id)).toEqual({
    id: operation.id,
    type: 'ModuleInstall',
    title: 'Module installation',
    status: 'Queued',
    createdAt: anyText,
    expiresAt: anyText,
    payload: { moduleId: 'hello' },
    createdBy: expect.objectContaining({ id: caller.userId }),
    steps: [
      { name: 'deploy', status: 'Pending' },
      { name: 'publish', status: 'Pending' },
    ],
  })
  const worker = await setStep(await claimed(operation))
  expect(await Job.read(caller, operation.id)).toMatchObject({
    status: 'Running',
    startedAt: anyText,
    steps: [{ status: 'Running', startedAt: anyText }, { status: 'Pending' }],
  })
  await finishOperation(await setStep(worker, 'Completed'), completedEnd)
  const job = await Job.read(caller, operation.id)
  expect(job).toMatchObject({
    status: 'Completed',
    completedAt: anyText,
    steps: [{ status: 'Completed', message: 'as a process' }, { status: 'Skipped' }],
    result: { output: 'It runs.', exitCode: 0, nodes: [], truncated: false, totalBytes: 8 },
  })
  expect(JobSchema.parse(job)).toEqual(job)
})

test('a failed operation has the failed step, events and transitions', async () => {
  const { caller, operation } = await newOperation()
  const worker = await setStep(await claimed(operation))
  await finishOperation(worker, failedEnd)
  expect(await Job.read(caller, worker.id)).toMatchObject({
    status: 'Failed',
    statusReason: 'module_operation_failed',
    steps: [{ status: 'Failed', startedAt: anyText, completedAt: anyText }, { status: 'Skipped' }],
    result: { output: 'It does not start.', exitCode: 1 },
  })
  const events = await readPendingEvents(caller)
  expect(events.map(({ name }) => name)).toEqual(['job.queued', 'job.started', 'job.failed'])
  for (const { name, data, subject } of events) {
    expect(eventSchemas[name as 'job.failed'].parse(data)).toEqual(data)
    expect([subject, data['jobId']]).toEqual([worker.id, worker.id])
  }
  const records = await readPendingRecords(caller.organisationId)
  expect(records.flatMap(({ transitions }) => transitions.map(({ from, to }) => [from, to]))).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
    ['Running', 'Failed'],
  ])
})

test.each<[OperationType, string]>([
  ['ModuleInstall', 'module_operation_failed'],
  ['ModuleUninstall', 'module_operation_failed'],
  ['PlatformUpdate', 'update_failed'],
  ['PlatformRollback', 'update_failed'],
])('a failed %s has the reason %s in job and event; a completed one has none', async (type, statusReason) => {
  const caller = await newCaller()
  const failingOperation = await claimed(await pendingOperation(caller, type))
  const successfulOperation = await claimed(await pendingOperation(caller, type))
  await finishOperation(failingOperation, failedEnd)
  await finishOperation(successfulOperation, completedEnd)
  expect(await Job.read(caller, failingOperation.id)).toMatchObject({ status: 'Failed', statusReason })
  expect(await Job.read(caller, successfulOperation.id)).not.toHaveProperty('statusReason')
  const data = { type, createdBy: caller.userId, previousStatus: 'Running' }
  const events = await readPendingEvents(caller)
  const ends = events.filter(({ name }) => name === 'job.failed' || name === 'job.completed')
  // Events of the same millisecond have no order.
  expect(new Set(ends)).toEqual(
    new Set([
      {
        id: anyText,
        name: 'job.failed',
        subject: failingOperation.id,
        data: { ...data, jobId: failingOperation.id, statusReason },
      },
      {
        id: anyText,
        name: 'job.completed',
        subject: successfulOperation.id,
        data: { ...data, jobId: successfulOperation.id },
      },
    ]),
  )
})

describe('the lease of an operation', () => {
  test('is held by one worker until it expires', async () => {
    const { operation } = await newOperation()
    const claims = await Promise.all(['a', 'b', 'c'].map((worker) => claimOperation(referenceOf(operation), worker)))
    const [lease, ...others] = claims.filter((each) => each !== undefined)
    expect(others).toEqual([])
    advanceClock(operationLeaseMs - 1000)
    const renewedLease = await renewLease(lease!)
    advanceClock(operationLeaseMs - 1000)
    expect(await claimOperation(referenceOf(operation), 'd')).toBeUndefined()
    advanceClock(2000)
    const secondLease = { leaseHolder: 'd', attempts: 2, status: 'Running' }
    expect(await claimOperation(referenceOf(operation), 'd')).toMatchObject(secondLease)
    expect(renewedLease.attempts).toBe(1)
  })

  test('is required for all writes', async () => {
    const { caller, operation } = await newOperation()
    const lostOperation = await claimed(operation)
    advanceClock(operationLeaseMs + 1)
    const worker = await setStep(await claimed(operation))
    await expect(setStep(lostOperation, 'Failed')).rejects.toThrow(LeaseLost)
    await expect(renewLease(lostOperation)).rejects.toThrow(LeaseLost)
    expect(await finishOperation(lostOperation, failedEnd)).toBe(false)
    const runningState = { status: 'Running', steps: [{ status: 'Running' }, {}] }
    expect(await Job.read(caller, operation.id)).toMatchObject(runningState)
    expect(await finishOperation(worker, completedEnd)).toBe(true)
    await expect(renewLease(worker)).rejects.toThrow(LeaseLost)
    expect(await finishOperation(worker, failedEnd)).toBe(false)
    expect(await claimOperation(referenceOf(operation), 'again')).toBeUndefined()
  })

  test('is not lost to a claim that read before its renewal', async () => {
    const { operation } = await newOperation()
    const worker = await claimed(operation)
    advanceClock(operationLeaseMs + 1)
    runBefore(/TransactWrite/, () => renewLease(worker))
    expect(await claimOperation(referenceOf(operation), 'late')).toBeUndefined()
  })

  test('is released for a retry after a pause', async () => {
    const { operation } = await newOperation()
    const worker = await claimed(operation)
    await Operation.releaseForRetry(worker, minuteMs)
    await expect(Operation.releaseForRetry(worker, minuteMs)).rejects.toThrow(LeaseLost)
    expect(await claimOperation(referenceOf(operation), 'early')).toBeUndefined()
    advanceClock(minuteMs)
    expect(await claimOperation(referenceOf(operation), 'next')).toMatchObject({ attempts: 2, status: 'Running' })
  })

  test('can be claimed again without another start time or event', async () => {
    const { caller, operation } = await newOperation()
    await claimed(operation)
    const { startedAt } = await Job.read(caller, operation.id)
    advanceClock(operationLeaseMs + 1)
    await claimed(operation)
    expect((await Job.read(caller, operation.id)).startedAt).toBe(startedAt)
    expect((await readPendingEvents(caller)).map(({ name }) => name)).toEqual(['job.queued', 'job.started'])
  })

  test('takes two calls to claim, and one per other write', async () => {
    const { operation } = await newOperation()
    let worker = operation
    expect(await countStoreCalls(async () => (worker = await claimed(operation)))).toBe(2)
    expect(await countStoreCalls(async () => (worker = await setStep(worker)))).toBe(1)
    expect(await countStoreCalls(async () => (worker = await renewLease(worker)))).toBe(1)
    expect(await countStoreCalls(() => finishOperation(worker, completedEnd))).toBe(1)
  })
})

test('operations cannot be cancelled', async () => {
  const { caller, operation } = await newOperation()
  await expectError(Job.cancel(caller, operation.id), 'job_not_cancellable')
  const request = `POST /api/v1/jobs/${operation.id}/cancel`
  expect(await requestErrorCode('jobs', request, [caller, 'OrgAdmin'])).toBe('job_not_cancellable')
  const worker = await claimed(operation)
  await expectError(Job.cancel(caller, operation.id), 'job_not_cancellable')
  await finishOperation(worker, completedEnd)
  await expectError(Job.cancel(caller, operation.id), 'job_already_finished')
  expect(await Job.read(caller, operation.id)).toMatchObject({ status: 'Completed' })
})

test('an operation has no live output', async () => {
  const { caller, operation } = await newOperation()
  const output = { items: [], nextOffset: 7, status: 'Queued', finished: false }
  expect(await readOutput(caller, operation.id, 7)).toEqual(output)
  await finishOperation(await claimed(operation), failedEnd)
  expect(await readOutput(caller, operation.id, 0)).toMatchObject({ status: 'Failed', finished: true })
})

test('operations are not found by relays', async () => {
  const { caller, operation } = await newOperation()
  const enrolled = await enrolledCluster(caller)
  await expectError(claim(enrolled.request(), operation.id, undefined), 'job_not_found')
  const response = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [operation.id] })
  expect(response.cancel).toEqual([operation.id])
})

describe('the sweep', () => {
  const key = ({ organisationId, id }: OperationRecord) => keys.job(organisationId, id)
  const countMessages = async ({ id }: OperationRecord) => {
    const messages = await receiveMessages(config.PLAT_QUEUE_INSTALLS)
    return messages.filter((message) => (message as { jobId?: string }).jobId === id).length
  }

  test('enqueues an operation again before its first claim and after its lease expires', async () => {
    const { operation } = await newOperation()
    await sweep()
    expect(await countMessages(operation)).toBe(0)
    advanceClock(2 * minuteMs)
    await sweep()
    await sweep()
    expect(await countMessages(operation)).toBe(1)
    let worker = await claimed(operation)
    for (let renewal = 0; renewal < 3; renewal++) {
      advanceClock(operationLeaseMs - 1000)
      worker = await renewLease(worker)
      await sweep()
    }
    expect(await countMessages(operation)).toBe(0)
    advanceClock(operationLeaseMs)
    await sweep()
    expect(await countMessages(operation)).toBe(1)
    await finishOperation(await claimed(operation), completedEnd)
    advanceClock(10 * minuteMs)
    await sweep()
    expect(await countMessages(operation)).toBe(0)
  })

  test('does not enqueue an operation that is claimed concurrently', async () => {
    await sweep()
    const { operation } = await newOperation()
    advanceClock(40_000)
    let isClaimed = false
    using _ = onStoreCall({
      before: async ({ command, input }) => {
        // The sweep reads several pages of due items at the same time.
        if (isClaimed || !/BatchGet/.test(command) || !JSON.stringify(input).includes(key(operation).pk)) return
        isClaimed = true
        await claimed(operation)
      },
    })
    await sweep()
    expect([isClaimed, await countMessages(operation)]).toEqual([true, 0])
  })

  test('removes the due time of an operation that has ended, also concurrently', async () => {
    const { operation } = await newOperation()
    const worker = await claimed(operation)
    advanceClock(operationLeaseMs + 1)
    runBefore(/TransactWrite/, () => finishOperation(worker, completedEnd))
    await sweep()
    expect(await get(key(operation))).not.toHaveProperty('duepk')
    await update(key(operation), { set: keys.dueIndexKeys(operation.id, now()) })
    advanceClock(1000)
    await sweep()
    const item = await get(key(operation))
    expect([item?.['status'], item?.['duepk'], item?.['duesk']]).toEqual(['Completed', undefined, undefined])
  })

  test.each([30, 24 * 60])('finds a lease from before the clock was set back by %i minutes', async (minutes) => {
    const { operation } = await newOperation()
    await claimed(operation)
    await sweep()
    advanceClock(-minutes * minuteMs)
    await sweep()
    expect(await countMessages(operation)).toBe(1)
    const worker = await claimed(operation)
    expect(worker.attempts).toBe(2)
    await finishOperation(worker, completedEnd)
  })
})
