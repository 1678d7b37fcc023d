import { eventSchemas } from '@platform/contract/event'
import { Job as JobSchema } from '@platform/contract/job'
import { sweep } from '@platform/core/background/sweep'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { claim } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { readOutput } from '@platform/core/jobs/output'
import {
  claimOperation,
  LeaseLost,
  operationLeaseMs,
  releaseForRetry,
  renewLease,
} from '@platform/core/operations/operation'
import {
  type OperationRecord,
  type OperationType,
  parseOperation,
  type StoredStep,
} from '@platform/core/operations/record'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeEach, expect, test } from 'vitest'
import { bootstrapPlatform, enrolledCluster, newCaller, requestErrorCode, expectError } from '../../support/fixtures.ts'
import { beforeCommand, countStoreCalls } from '../../support/store-calls.ts'
import { receiveMessages } from '../support/messages.ts'
import { advanceClock, minute } from '../support/notifications.ts'
import { claimed, finishOperation, pendingOperation, referenceOf } from '../support/operations.ts'
import { pendingRecords } from '../support/outbox.ts'

await bootstrapPlatform()

/** Its worker journals the first of its steps. */
const deploying = (worker: OperationRecord, status: StoredStep['status'] = 'Running') =>
  renewLease(
    worker,
    worker.steps.map((step, place) =>
      place === 0 ? { name: step.name, status, message: 'as a process', startedAtMs: now() } : step,
    ),
  )

test('an operation is a job without a cluster: it is polled like others, with its steps and its outcome', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  expect(await Job.read(caller, operation.id)).toEqual({
    id: operation.id,
    type: 'ModuleInstall',
    status: 'Queued',
    createdAt: expect.any(String),
    expiresAt: expect.any(String),
    payload: { moduleId: 'hello' },
    steps: [
      { name: 'deploy', status: 'Pending' },
      { name: 'publish', status: 'Pending' },
    ],
  })
  const worker = await deploying(await claimed(operation))
  expect(await Job.read(caller, operation.id)).toMatchObject({
    status: 'Running',
    startedAt: expect.any(String),
    steps: [{ status: 'Running', startedAt: expect.any(String) }, { status: 'Pending' }],
  })
  await finishOperation(await deploying(worker, 'Completed'), {
    status: 'Completed',
    outcome: 'It runs.',
  })
  const job = await Job.read(caller, operation.id)
  expect(job).toMatchObject({
    status: 'Completed',
    completedAt: expect.any(String),
    steps: [{ status: 'Completed', message: 'as a process' }, { status: 'Skipped' }],
    result: { output: 'It runs.', exitCode: 0, nodes: [], truncated: false, totalBytes: 8 },
  })
  expect(JobSchema.parse(job)).toEqual(job)
})

test('an operation that fails says at which step and why, and tells who listens', async () => {
  const caller = await newCaller()
  const worker = await deploying(await claimed(await pendingOperation(caller)))
  await finishOperation(worker, { status: 'Failed', outcome: 'It does not start.' })
  expect(await Job.read(caller, worker.id)).toMatchObject({
    status: 'Failed',
    statusReason: 'module_operation_failed',
    steps: [
      { status: 'Failed', startedAt: expect.any(String), completedAt: expect.any(String) },
      { status: 'Skipped' },
    ],
    result: { output: 'It does not start.', exitCode: 1 },
  })
  const records = await pendingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events)
  expect(events.map(({ name }) => name)).toEqual(['job.queued', 'job.started', 'job.failed'])
  for (const { name, data, subject } of events) {
    expect(eventSchemas[name as 'job.failed'].parse(data)).toEqual(data)
    expect([subject, data['jobId']]).toEqual([worker.id, worker.id])
  }
  expect(records.flatMap(({ transitions }) => transitions.map(({ from, to }) => [from, to]))).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
    ['Running', 'Failed'],
  ])
})

test('of workers that begin at once one does, and nobody else while it says that it is at it', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const tries = await Promise.all(['a', 'b', 'c'].map((worker) => claimOperation(referenceOf(operation), worker)))
  expect(tries.filter((held) => held !== undefined)).toHaveLength(1)
  const held = tries.find((each) => each !== undefined)
  if (held === undefined) throw new Error('Nobody has begun it.')
  advanceClock(operationLeaseMs - 1000)
  const renewed = await renewLease(held)
  advanceClock(operationLeaseMs - 1000)
  expect(await claimOperation(referenceOf(operation), 'd')).toBeUndefined()
  advanceClock(2000)
  expect(await claimOperation(referenceOf(operation), 'd')).toMatchObject({
    leaseHolder: 'd',
    attempts: 2,
    status: 'Running',
  })
  expect(renewed.attempts).toBe(1)
})

test('a worker that somebody has taken over from journals nothing, renews nothing and ends nothing', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const lost = await claimed(operation)
  advanceClock(operationLeaseMs + 1)
  const worker = await deploying(await claimed(operation))
  await expect(deploying(lost, 'Failed')).rejects.toThrow(LeaseLost)
  await expect(renewLease(lost)).rejects.toThrow(LeaseLost)
  expect(await finishOperation(lost, { status: 'Failed', outcome: 'no' })).toBe(false)
  expect(await Job.read(caller, operation.id)).toMatchObject({ status: 'Running', steps: [{ status: 'Running' }, {}] })
  expect(await finishOperation(worker, { status: 'Completed', outcome: 'yes' })).toBe(true)
  await expect(renewLease(worker)).rejects.toThrow(LeaseLost)
  expect(await finishOperation(worker, { status: 'Failed', outcome: 'no' })).toBe(false)
  expect(await claimOperation(referenceOf(operation), 'again')).toBeUndefined()
})

test('a claim that came from reading just before somebody else renewed does not happen', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const worker = await claimed(operation)
  advanceClock(operationLeaseMs + 1)
  const happened = beforeCommand(/TransactWrite/, () => renewLease(worker))
  expect(await claimOperation(referenceOf(operation), 'late')).toBeUndefined()
  expect(happened()).toBe(true)
})

test('a worker that hands an operation back leaves it alone for a pause, and has no part in it any more', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const worker = await claimed(operation)
  await releaseForRetry(worker, minute)
  await expect(releaseForRetry(worker, minute)).rejects.toThrow(LeaseLost)
  expect(await claimOperation(referenceOf(operation), 'early')).toBeUndefined()
  advanceClock(minute)
  expect(await claimOperation(referenceOf(operation), 'next')).toMatchObject({ attempts: 2, status: 'Running' })
})

test('nobody cancels an operation, whether it waits, runs or is over', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  await expectError(Job.cancel(caller, operation.id), 'job_not_cancellable')
  const request = `POST /api/v1/jobs/${operation.id}/cancel`
  expect(await requestErrorCode('jobs', request, [caller, 'OrgAdmin'])).toBe('job_not_cancellable')
  const worker = await claimed(operation)
  await expectError(Job.cancel(caller, operation.id), 'job_not_cancellable')
  await finishOperation(worker, { status: 'Completed', outcome: '' })
  await expectError(Job.cancel(caller, operation.id), 'job_already_finished')
  expect(await Job.read(caller, operation.id)).toMatchObject({ status: 'Completed' })
})

test('an operation has no live output; whoever waits for some hears when it is over', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  expect(await readOutput(caller, operation.id, 7)).toEqual({
    items: [],
    nextOffset: 7,
    status: 'Queued',
    finished: false,
  })
  await finishOperation(await claimed(operation), { status: 'Failed', outcome: 'no' })
  expect(await readOutput(caller, operation.id, 0, 20)).toMatchObject({ status: 'Failed', finished: true })
})

test('nobody of another organisation finds it, and no relay has a part in it', async () => {
  const caller = await newCaller()
  const { id } = await pendingOperation(caller)
  const stranger = await newCaller()
  await expectError(Job.read(stranger, id), 'job_not_found')
  await expectError(Job.cancel(stranger, id), 'job_not_found')
  const enrolled = await enrolledCluster(caller)
  await expectError(claim(enrolled.request(), id, undefined), 'job_not_found')
  const { response } = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [id] })
  expect(response.cancel).toEqual([id])
})

test('an operation that is begun again has started once, for whoever asks and whoever listens', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  await claimed(operation)
  const { startedAt } = await Job.read(caller, operation.id)
  advanceClock(operationLeaseMs + 1)
  await claimed(operation)
  expect((await Job.read(caller, operation.id)).startedAt).toBe(startedAt)
  const events = (await pendingRecords(caller.organisationId)).flatMap((record) => record.events)
  expect(events.map(({ name }) => name)).toEqual(['job.queued', 'job.started'])
})

test('what is stored is what was asked for', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const item = await get(keys.job(caller.organisationId, operation.id))
  expect(item && parseOperation(item)).toEqual(operation)
  expect(await claimOperation({ organisationId: caller.organisationId, jobId: newId('job') }, 'x')).toBeUndefined()
})

test('beginning takes two calls, everything else one', async () => {
  const operation = await pendingOperation(await newCaller())
  let worker = operation
  expect(await countStoreCalls(async () => (worker = await claimed(operation)))).toBe(2)
  expect(await countStoreCalls(async () => (worker = await deploying(worker)))).toBe(1)
  expect(await countStoreCalls(async () => (worker = await renewLease(worker)))).toBe(1)
  expect(await countStoreCalls(() => finishOperation(worker, { status: 'Completed', outcome: '' }))).toBe(1)
})

/** How operations of each type end, and what is left of them. */

await bootstrapPlatform()

const reasons: Record<OperationType, string> = {
  ModuleInstall: 'module_operation_failed',
  ModuleUninstall: 'module_operation_failed',
  PlatformUpdate: 'update_failed',
  PlatformRollback: 'update_failed',
}

test.each(Object.entries(reasons) as [OperationType, string][])(
  'a %s that fails says so by %s, to who asks and to who listens; one that is completed has no reason',
  async (type, statusReason) => {
    const caller = await newCaller()
    const [bad, good] = [
      await claimed(await pendingOperation(caller, type)),
      await claimed(await pendingOperation(caller, type)),
    ]
    await finishOperation(bad, { status: 'Failed', outcome: 'No.' })
    await finishOperation(good, { status: 'Completed', outcome: 'Yes.' })
    expect(await Job.read(caller, bad.id)).toMatchObject({ status: 'Failed', statusReason })
    expect(await Job.read(caller, good.id)).not.toHaveProperty('statusReason')
    const events = (await pendingRecords(caller.organisationId)).flatMap((record) => record.events)
    const facts = { type, createdBy: caller.userId, previousStatus: 'Running' }
    expect(events.filter(({ name }) => name === 'job.failed' || name === 'job.completed')).toEqual([
      { id: expect.any(String), name: 'job.failed', subject: bad.id, data: { ...facts, jobId: bad.id, statusReason } },
      { id: expect.any(String), name: 'job.completed', subject: good.id, data: { ...facts, jobId: good.id } },
    ])
  },
)

test('the sweep forgets an operation that is over', async () => {
  const caller = await newCaller()
  const worker = await claimed(await pendingOperation(caller))
  await finishOperation(worker, { status: 'Completed', outcome: '' })
  const key = keys.job(caller.organisationId, worker.id)
  await update(key, { set: keys.due(worker.id, now()) })
  advanceClock(1000)
  await sweep()
  const item = await get(key)
  expect([item?.['status'], item?.['duepk'], item?.['duesk']]).toEqual(['Completed', undefined, undefined])
})

await bootstrapPlatform()
beforeEach(async () => void (await receiveMessages(config.PLAT_QUEUE_UPDATES)))

test('the sweep announces an operation again until somebody begins it, and once its worker is silent', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const announced = async () => {
    const messages = await receiveMessages(config.PLAT_QUEUE_UPDATES)
    return messages.filter((message) => (message as { jobId?: string }).jobId === operation.id).length
  }
  await sweep()
  expect(await announced()).toBe(0)
  advanceClock(2 * minute)
  await sweep()
  await sweep()
  expect(await announced()).toBe(1)
  let worker = await claimed(operation)
  for (let beat = 0; beat < 3; beat++) {
    advanceClock(operationLeaseMs - 1000)
    worker = await renewLease(worker)
    await sweep()
  }
  expect(await announced()).toBe(0)
  advanceClock(operationLeaseMs)
  await sweep()
  expect(await announced()).toBe(1)
  worker = await claimed(operation)
  await finishOperation(worker, { status: 'Completed', outcome: '' })
  advanceClock(10 * minute)
  await sweep()
  expect(await announced()).toBe(0)
})

test('an operation that is begun while the sweep looks for it is left to its worker', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  advanceClock(2 * minute)
  const happened = beforeCommand(/BatchGet/, () => claimed(operation))
  await sweep()
  expect(happened()).toBe(true)
  const messages = await receiveMessages(config.PLAT_QUEUE_UPDATES)
  expect(messages.filter((message) => (message as { jobId?: string }).jobId === operation.id)).toEqual([])
})

test('an operation that ends while the sweep looks at it is not due any more', async () => {
  const caller = await newCaller()
  const worker = await claimed(await pendingOperation(caller))
  advanceClock(operationLeaseMs + 1)
  const happened = beforeCommand(/TransactWrite/, () => finishOperation(worker, { status: 'Completed', outcome: '' }))
  await sweep()
  expect(happened()).toBe(true)
  const item = await get(keys.job(caller.organisationId, worker.id))
  expect([item?.['status'], item?.['duepk']]).toEqual(['Completed', undefined])
})
