import { beforeAll, expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { append } from '@platform/core/jobs/output'
import { justBefore } from '../../support/store-calls.ts'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { completion, counters, waitingJob } from '../support/jobs.ts'
import { atStoreCalls } from '../support/store-hook.ts'

/** Ends that relays report: of their own leases, once, with all that was printed. */

beforeAll(started)

async function running() {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  return { caller, world, jobId, leaseId, key: keys.job(caller.organisationId, jobId) }
}

test('an end is told with how it came, and the job waits for nobody any more', async () => {
  const { caller, world, jobId, leaseId, key } = await running()
  await complete(world.request(), jobId, completion(world, leaseId, 3))
  const records = await waitingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events).filter(({ name }) => name === 'job.failed')
  const data = { jobId, previousStatus: 'Running', statusReason: 'exit_nonzero', exitCode: 3 }
  expect(events).toMatchObject([{ subject: jobId, data }])
  const row = await get(key)
  expect([row?.['duepk'], row?.['duesk'], row?.['status']]).toEqual([undefined, undefined, 'Failed'])
})

test('an end is that of a lease: with another one, or of another relay, nothing ends', async () => {
  const { world, jobId, leaseId, key } = await running()
  const report = completion(world, leaseId)
  expect(await refusalOf(complete(world.request(), jobId, { ...report, leaseId: newId('lease') }))).toBe(
    'lease_not_held',
  )
  await update(key, { set: { relayId: newId('relay') } })
  expect(await refusalOf(complete(world.request(), jobId, report))).toBe('lease_not_held')
  expect((await get(key))?.['status']).toBe('Running')
})

test('a request that was used ends nothing', async () => {
  const { world, jobId, leaseId, key } = await running()
  const request = world.request()
  await append(request, jobId, { leaseId, seq: 0, nodeId: 'node', stream: 'stdout', data: 'x' })
  expect(await refusalOf(complete(request, jobId, completion(world, leaseId)))).toBe('unauthenticated')
  expect((await get(key))?.['status']).toBe('Running')
})

test('output that comes while a job ends is part of its result', async () => {
  const { caller, world, jobId, leaseId } = await running()
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'late' }
  const isPrinted = justBefore(/^TransactWrite/, () => append(world.request(), jobId, chunk))
  expect(await complete(world.request(), jobId, completion(world, leaseId))).toEqual({ jobId, status: 'Completed' })
  expect(isPrinted()).toBe(true)
  expect((await Job.read(caller, jobId)).result?.output).toBe('late')
})

test('a job that is never as it was just read is left as it is after four tries', async () => {
  const { world, jobId, leaseId, key } = await running()
  let tries = 0
  {
    using _ = atStoreCalls({
      before: async ({ command }) => {
        if (command.startsWith('TransactWrite')) await update(key, { set: { outputBytes: ++tries } })
      },
    })
    expect(await refusalOf(complete(world.request(), jobId, completion(world, leaseId)))).toBe('database_unavailable')
  }
  expect(tries).toBe(4)
  expect((await get(key))?.['status']).toBe('Running')
})

test('a lease that goes to another while a job ends does not end it', async () => {
  const { caller, world, jobId, leaseId, key } = await running()
  const isLost = justBefore(/^TransactWrite/, () => update(key, { set: { leaseId: newId('lease') } }))
  expect(await refusalOf(complete(world.request(), jobId, completion(world, leaseId)))).toBe('lease_not_held')
  expect(isLost()).toBe(true)
  expect(await counters(caller, world)).toEqual([1, 0])
})

test('who asks for nothing is not told that its job was cancelled', async () => {
  const { caller, world, jobId, leaseId } = await running()
  await Job.cancel(caller, jobId)
  const report = completion(world, leaseId)
  expect(await complete(world.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
})

test('the same report again is the same end; another one is late, and only the first late one is kept', async () => {
  const { caller, world, jobId, leaseId } = await running()
  const report = completion(world, leaseId)
  await complete(world.request(), jobId, report)
  expect(await complete(world.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
  expect(await Job.read(caller, jobId)).not.toHaveProperty('lateResult')
  for (const exitCode of [7, 8]) {
    expect(await refusalOf(complete(world.request(), jobId, { ...report, exitCode }))).toBe('job_already_finished')
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
    expect(await refusalOf(complete(world.request(), jobId, { ...report, ...change }))).toBe('job_already_finished')
  }
})

test('of two late reports at the same moment one is kept', async () => {
  const { caller, world, jobId, leaseId } = await running()
  const report = completion(world, leaseId)
  await complete(world.request(), jobId, report)
  const late = (exitCode: number) => refusalOf(complete(world.request(), jobId, { ...report, exitCode }))
  const isFirst = justBefore(/^TransactWrite/, () => late(7))
  expect(await late(8)).toBe('job_already_finished')
  expect(isFirst()).toBe(true)
  expect((await Job.read(caller, jobId)).lateResult).toMatchObject({ exitCode: 7 })
})
