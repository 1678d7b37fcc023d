import { expect, test } from 'vitest'
import { eventSchemas } from '@platform/contract/event'
import { Job as JobSchema } from '@platform/contract/job'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import {
  claimOperation,
  releaseForRetry,
  LeaseLost,
  operationLeaseMs,
  renewLease,
} from '@platform/core/operations/operation'
import { type OperationRecord, parseOperation, type StoredStep } from '@platform/core/operations/record'
import { readOutput } from '@platform/core/jobs/output'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { refusalBy } from '../../support/asked.ts'
import { callsOf, justBefore } from '../../support/store-calls.ts'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { begun, ended, referenceOf, waitingOperation } from '../support/operations.ts'
import { later, minute } from '../support/told.ts'

await started()

/** Its worker journals the first of its steps. */
const deploying = (worker: OperationRecord, status: StoredStep['status'] = 'Running') =>
  renewLease(
    worker,
    worker.steps.map((step, place) =>
      place === 0 ? { name: step.name, status, message: 'as a process', startedAtMs: now() } : step,
    ),
  )

test('an operation is a job without a cluster: it is polled like others, with its steps and its outcome', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
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
  const worker = await deploying(await begun(operation))
  expect(await Job.read(caller, operation.id)).toMatchObject({
    status: 'Running',
    startedAt: expect.any(String),
    steps: [{ status: 'Running', startedAt: expect.any(String) }, { status: 'Pending' }],
  })
  await ended(await deploying(worker, 'Completed'), {
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
  const caller = await callerOf()
  const worker = await deploying(await begun(await waitingOperation(caller)))
  await ended(worker, { status: 'Failed', outcome: 'It does not start.' })
  expect(await Job.read(caller, worker.id)).toMatchObject({
    status: 'Failed',
    statusReason: 'module_operation_failed',
    steps: [
      { status: 'Failed', startedAt: expect.any(String), completedAt: expect.any(String) },
      { status: 'Skipped' },
    ],
    result: { output: 'It does not start.', exitCode: 1 },
  })
  const records = await waitingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events)
  expect(events.map(({ name }) => name)).toEqual(['job.queued', 'job.started', 'job.failed'])
  for (const { name, data, subject } of events) {
    expect(eventSchemas[name as 'job.failed'].parse(data)).toEqual(data)
    expect([subject, data['jobId']]).toEqual([worker.id, worker.id])
  }
  expect(records.flatMap(({ moves }) => moves.map(({ from, to }) => [from, to]))).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
    ['Running', 'Failed'],
  ])
})

test('of workers that begin at once one does, and nobody else while it says that it is at it', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const tries = await Promise.all(['a', 'b', 'c'].map((worker) => claimOperation(referenceOf(operation), worker)))
  expect(tries.filter((held) => held !== undefined)).toHaveLength(1)
  const held = tries.find((each) => each !== undefined)
  if (held === undefined) throw new Error('Nobody has begun it.')
  later(operationLeaseMs - 1000)
  const renewed = await renewLease(held)
  later(operationLeaseMs - 1000)
  expect(await claimOperation(referenceOf(operation), 'd')).toBeUndefined()
  later(2000)
  expect(await claimOperation(referenceOf(operation), 'd')).toMatchObject({
    workerId: 'd',
    attempts: 2,
    status: 'Running',
  })
  expect(renewed.attempts).toBe(1)
})

test('a worker that somebody has taken over from journals nothing, renews nothing and ends nothing', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const lost = await begun(operation)
  later(operationLeaseMs + 1)
  const worker = await deploying(await begun(operation))
  await expect(deploying(lost, 'Failed')).rejects.toThrow(LeaseLost)
  await expect(renewLease(lost)).rejects.toThrow(LeaseLost)
  expect(await ended(lost, { status: 'Failed', outcome: 'no' })).toBe(false)
  expect(await Job.read(caller, operation.id)).toMatchObject({ status: 'Running', steps: [{ status: 'Running' }, {}] })
  expect(await ended(worker, { status: 'Completed', outcome: 'yes' })).toBe(true)
  await expect(renewLease(worker)).rejects.toThrow(LeaseLost)
  expect(await ended(worker, { status: 'Failed', outcome: 'no' })).toBe(false)
  expect(await claimOperation(referenceOf(operation), 'again')).toBeUndefined()
})

test('a claim that came from reading just before somebody else renewed does not happen', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const worker = await begun(operation)
  later(operationLeaseMs + 1)
  const happened = justBefore(/TransactWrite/, () => renewLease(worker))
  expect(await claimOperation(referenceOf(operation), 'late')).toBeUndefined()
  expect(happened()).toBe(true)
})

test('a worker that hands an operation back leaves it alone for a pause, and has no part in it any more', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const worker = await begun(operation)
  await releaseForRetry(worker, minute)
  await expect(releaseForRetry(worker, minute)).rejects.toThrow(LeaseLost)
  expect(await claimOperation(referenceOf(operation), 'early')).toBeUndefined()
  later(minute)
  expect(await claimOperation(referenceOf(operation), 'next')).toMatchObject({ attempts: 2, status: 'Running' })
})

test('nobody cancels an operation, whether it waits, runs or is over', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  expect(await refusalOf(Job.cancel(caller, operation.id))).toBe('job_not_cancellable')
  const request = `POST /api/v1/jobs/${operation.id}/cancel`
  expect(await refusalBy('jobs', request, [caller, 'OrgAdmin'])).toBe('job_not_cancellable')
  const worker = await begun(operation)
  expect(await refusalOf(Job.cancel(caller, operation.id))).toBe('job_not_cancellable')
  await ended(worker, { status: 'Completed', outcome: '' })
  expect(await refusalOf(Job.cancel(caller, operation.id))).toBe('job_already_finished')
  expect(await Job.read(caller, operation.id)).toMatchObject({ status: 'Completed' })
})

test('an operation has no live output; whoever waits for some hears when it is over', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  expect(await readOutput(caller, operation.id, 7)).toEqual({
    items: [],
    nextOffset: 7,
    status: 'Queued',
    finished: false,
  })
  await ended(await begun(operation), { status: 'Failed', outcome: 'no' })
  expect(await readOutput(caller, operation.id, 0, 20)).toMatchObject({ status: 'Failed', finished: true })
})

test('nobody of another organisation finds it, and no relay has a part in it', async () => {
  const caller = await callerOf()
  const { id } = await waitingOperation(caller)
  const stranger = await callerOf()
  expect(await refusalOf(Job.read(stranger, id))).toBe('job_not_found')
  expect(await refusalOf(Job.cancel(stranger, id))).toBe('job_not_found')
  const world = await enrolledCluster(caller)
  expect(await refusalOf(claim(world.request(), id, undefined))).toBe('job_not_found')
  const { answer } = await heartbeat(world.request(), { ...world.beat, running: [id] })
  expect(answer.cancel).toEqual([id])
})

test('an operation that is begun again has started once, for whoever asks and whoever listens', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  await begun(operation)
  const { startedAt } = await Job.read(caller, operation.id)
  later(operationLeaseMs + 1)
  await begun(operation)
  expect((await Job.read(caller, operation.id)).startedAt).toBe(startedAt)
  const events = (await waitingRecords(caller.organisationId)).flatMap((record) => record.events)
  expect(events.map(({ name }) => name)).toEqual(['job.queued', 'job.started'])
})

test('what is stored is what was asked for', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const item = await get(keys.job(caller.organisationId, operation.id))
  expect(item && parseOperation(item)).toEqual(operation)
  expect(await claimOperation({ organisationId: caller.organisationId, jobId: newId('job') }, 'x')).toBeUndefined()
})

test('beginning takes two calls, everything else one', async () => {
  const operation = await waitingOperation(await callerOf())
  let worker = operation
  expect(await callsOf(async () => (worker = await begun(operation)))).toBe(2)
  expect(await callsOf(async () => (worker = await deploying(worker)))).toBe(1)
  expect(await callsOf(async () => (worker = await renewLease(worker)))).toBe(1)
  expect(await callsOf(() => ended(worker, { status: 'Completed', outcome: '' }))).toBe(1)
})
