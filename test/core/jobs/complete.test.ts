import { beforeAll, expect, test } from 'vitest'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { complete } from '@platform/core/jobs/complete'
import { append } from '@platform/core/jobs/output'
import { onStoreCall, beforeCommand } from '../../support/store-calls.ts'
import { errorCodeOf, bootstrapPlatform, expectError } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import { completionReport, jobCounters, runningJob } from '../support/jobs.ts'
import * as Job from '@platform/core/jobs/job'

/** Ends that relays report: of their own leases, once, with all that was printed. */

beforeAll(bootstrapPlatform)

test('an end is told with how it came, and the job waits for nobody any more', async () => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, 3))
  const records = await pendingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events).filter(({ name }) => name === 'job.failed')
  const data = { jobId, previousStatus: 'Running', statusReason: 'exit_nonzero', exitCode: 3 }
  expect(events).toMatchObject([{ subject: jobId, data }])
  const row = await get(key)
  expect([row?.['duepk'], row?.['duesk'], row?.['status']]).toEqual([undefined, undefined, 'Failed'])
})

test('an end is that of a lease: with another one, or of another relay, nothing ends', async () => {
  const { enrolled, jobId, leaseId, key } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await expectError(complete(enrolled.request(), jobId, { ...report, leaseId: newId('lease') }), 'lease_not_held')
  await update(key, { set: { relayId: newId('relay') } })
  await expectError(complete(enrolled.request(), jobId, report), 'lease_not_held')
  expect((await get(key))?.['status']).toBe('Running')
})

test('a request that was used ends nothing', async () => {
  const { enrolled, jobId, leaseId, key } = await runningJob()
  const request = enrolled.request()
  await append(request, jobId, { leaseId, seq: 0, nodeId: 'node', stream: 'stdout', data: 'x' })
  await expectError(complete(request, jobId, completionReport(enrolled, leaseId)), 'unauthenticated')
  expect((await get(key))?.['status']).toBe('Running')
})

test('output that comes while a job ends is part of its result', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'late' }
  const isPrinted = beforeCommand(/^TransactWrite/, () => append(enrolled.request(), jobId, chunk))
  expect(await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))).toEqual({
    jobId,
    status: 'Completed',
  })
  expect(isPrinted()).toBe(true)
  expect((await Job.read(caller, jobId)).result?.output).toBe('late')
})

test('a job that is never as it was just read is left as it is after four tries', async () => {
  const { enrolled, jobId, leaseId, key } = await runningJob()
  let tries = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (command.startsWith('TransactWrite')) await update(key, { set: { outputBytes: ++tries } })
      },
    })
    await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'database_unavailable')
  }
  expect(tries).toBe(4)
  expect((await get(key))?.['status']).toBe('Running')
})

test('a lease that goes to another while a job ends does not end it', async () => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  const isLost = beforeCommand(/^TransactWrite/, () => update(key, { set: { leaseId: newId('lease') } }))
  await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'lease_not_held')
  expect(isLost()).toBe(true)
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test('who asks for nothing is not told that its job was cancelled', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await Job.cancel(caller, jobId)
  const report = completionReport(enrolled, leaseId)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
})

test('the same report again is the same end; another one is late, and only the first late one is kept', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
  expect(await Job.read(caller, jobId)).not.toHaveProperty('lateResult')
  for (const exitCode of [7, 8]) {
    await expectError(complete(enrolled.request(), jobId, { ...report, exitCode }), 'job_already_finished')
  }
  const { lateResult, status } = await Job.read(caller, jobId)
  expect([status, lateResult]).toEqual([
    'Completed',
    { outcome: 'exited', exitCode: 7, reportedAt: expect.any(String) },
  ])
  for (const change of [
    { outcome: 'interrupted' as const },
    { nodes: [] },
    { nodes: report.nodes.map((node) => ({ ...node, exitCode: 1 })) },
  ]) {
    await expectError(complete(enrolled.request(), jobId, { ...report, ...change }), 'job_already_finished')
  }
})

test('of two late reports at the same moment one is kept', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  const late = (exitCode: number) => errorCodeOf(complete(enrolled.request(), jobId, { ...report, exitCode }))
  const isFirst = beforeCommand(/^TransactWrite/, () => late(7))
  expect(await late(8)).toBe('job_already_finished')
  expect(isFirst()).toBe(true)
  expect((await Job.read(caller, jobId)).lateResult).toMatchObject({ exitCode: 7 })
})
