import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { append, readOutput } from '@platform/core/jobs/output'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, errorCodeOf, expectError } from '../../support/fixtures.ts'
import { beforeCommand, onStoreCall } from '../../support/store-calls.ts'
import { completionReport, dispatchedJob, jobCounters, runJob, runningJob, waitingJob } from '../support/jobs.ts'
import { pendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

const outputChunk = (leaseId: string, seq: number, data: string) => ({
  leaseId,
  seq,
  nodeId: 'node',
  stream: 'stdout' as const,
  data,
})

test.each([
  ['exited', 3, 'Failed', 'exit_nonzero'],
  ['timed_out', null, 'Failed', 'execution_timeout'],
  ['rejected', null, 'Failed', 'relay_rejected'],
  ['interrupted', null, 'Failed', 'interrupted'],
  ['cancelled', null, 'Failed', 'interrupted'],
] as const)('the outcome %s with exit code %s is %s (%s)', async (outcome, exitCode, status, statusReason) => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  const report = { ...completionReport(enrolled, leaseId, exitCode), outcome }
  const responses = [complete(enrolled.request(), jobId, report), complete(enrolled.request(), jobId, report)]
  for (const response of await Promise.all(responses)) expect(response).toEqual({ jobId, status })
  expect(await Job.read(caller, jobId)).toMatchObject({ status, statusReason, result: { exitCode } })
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
  await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  const item = await get(key)
  expect([item?.['duepk'], item?.['duesk']]).toEqual([undefined, undefined])
  const records = await pendingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events).filter(({ name }) => name === 'job.failed')
  expect(events).toMatchObject([{ subject: jobId, data: { jobId, previousStatus: 'Running', statusReason, exitCode } }])
})

test('the exit code of a job is the first non-zero one of its nodes', async () => {
  const { caller, enrolled } = await callerWithCluster(['a', 'b', 'c'])
  const jobId = await dispatchedJob(caller, enrolled)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  const nodes = enrolled.relay.nodes.map(({ id }, index) => ({ nodeId: id, exitCode: index * 3 }))
  await complete(enrolled.request(), jobId, { leaseId, outcome: 'exited', exitCode: 0, nodes })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', result: { exitCode: 3 } })
})

test('rejects completions with another lease or of another relay', async () => {
  const { enrolled, jobId, leaseId, record, key } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await expectError(complete(enrolled.request(), jobId, { ...report, leaseId: newId('lease') }), 'lease_not_held')
  await update(key, { set: { relayId: newId('relay') } })
  await expectError(complete(enrolled.request(), jobId, report), 'lease_not_held')
  expect((await record()).status).toBe('Running')
})

test('rejects a completion whose lease changes concurrently', async () => {
  const { caller, enrolled, jobId, leaseId, key } = await runningJob()
  const isChanged = beforeCommand(/^TransactWrite/, () => update(key, { set: { leaseId: newId('lease') } }))
  await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'lease_not_held')
  expect(isChanged()).toBe(true)
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test('rejects a replayed request', async () => {
  const { enrolled, jobId, leaseId, record } = await runningJob()
  const request = enrolled.request()
  await append(request, jobId, outputChunk(leaseId, 0, 'x'))
  await expectError(complete(request, jobId, completionReport(enrolled, leaseId)), 'unauthenticated')
  expect((await record()).status).toBe('Running')
})

test('the result includes output that arrives during completion', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const isAppended = beforeCommand(/^TransactWrite/, () =>
    append(enrolled.request(), jobId, outputChunk(leaseId, 0, 'late')),
  )
  const response = await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  expect(response).toEqual({ jobId, status: 'Completed' })
  expect(isAppended()).toBe(true)
  expect((await Job.read(caller, jobId)).result?.output).toBe('late')
})

test('fails after four conflicting changes and leaves the job unchanged', async () => {
  const { enrolled, jobId, leaseId, record, key } = await runningJob()
  let attempts = 0
  {
    using _ = onStoreCall({
      before: async ({ command }) => {
        if (command.startsWith('TransactWrite')) await update(key, { set: { outputBytes: ++attempts } })
      },
    })
    await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'database_unavailable')
  }
  expect(attempts).toBe(4)
  expect((await record()).status).toBe('Running')
})

test('completes a job that exits despite a cancellation request', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await Job.cancel(caller, jobId)
  const report = completionReport(enrolled, leaseId)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
})

test('a completion is idempotent, and the first different report is stored as late result', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  expect(await complete(enrolled.request(), jobId, report)).toEqual({ jobId, status: 'Completed' })
  expect(await Job.read(caller, jobId)).not.toHaveProperty('lateResult')
  const failedNodes = report.nodes.map((node) => ({ ...node, exitCode: 1 }))
  const changes = [
    { exitCode: 7 },
    { exitCode: 8 },
    { outcome: 'interrupted' as const },
    { nodes: [] },
    { nodes: failedNodes },
  ]
  for (const change of changes) {
    await expectError(complete(enrolled.request(), jobId, { ...report, ...change }), 'job_already_finished')
  }
  const lateResult = { outcome: 'exited', exitCode: 7, reportedAt: expect.any(String) }
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', lateResult })
})

test('stores one of two concurrent late results', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const report = completionReport(enrolled, leaseId)
  await complete(enrolled.request(), jobId, report)
  const late = (exitCode: number) => errorCodeOf(complete(enrolled.request(), jobId, { ...report, exitCode }))
  const isFirst = beforeCommand(/^TransactWrite/, () => late(7))
  expect(await late(8)).toBe('job_already_finished')
  expect(isFirst()).toBe(true)
  expect((await Job.read(caller, jobId)).lateResult).toMatchObject({ exitCode: 7 })
})

test('stores output once per sequence number and rejects gaps', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const chunk = outputChunk(leaseId, 0, 'once')
  await Promise.all([1, 2, 3].map(() => append(enrolled.request(), jobId, chunk)))
  expect(await append(enrolled.request(), jobId, chunk)).toEqual({ nextSeq: 1, cancel: false })
  await expectError(append(enrolled.request(), jobId, { ...chunk, seq: 5 }), 'output_out_of_order')
  await expectError(append(enrolled.request(), jobId, { ...chunk, leaseId: 'lease_x' }), 'lease_not_held')
  expect((await readOutput(caller, jobId, 0)).items.map(({ data }) => data)).toEqual(['once'])
})

/** The result of a job that printed these chunks. */
async function resultOf(chunks: readonly string[]) {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  for (const [seq, data] of chunks.entries()) {
    await append(enrolled.request(), jobId, { ...outputChunk(leaseId, seq, data), nodeId })
  }
  const live = await readOutput(caller, jobId, 0)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const job = await Job.read(caller, jobId)
  return { live, job, result: job.result! }
}

test('the result includes hundreds of small chunks', async () => {
  const { job, result } = await resultOf(Array.from({ length: 300 }, () => '.'))
  expect([job.status, result.output]).toEqual(['Completed', '.'.repeat(300)])
})

test('truncates output that JSON escapes enlarge beyond the response limit', async () => {
  const zeros = '\0'.repeat(65_000)
  const chunks = Array.from({ length: 16 }, (_, seq) => (seq === 0 ? `first${zeros}` : `${zeros}last`))
  const { live, job, result } = await resultOf(chunks)
  expect(JSON.stringify(live).length).toBeLessThan(6_000_000)
  expect(JSON.stringify(job).length).toBeLessThan(6_000_000)
  expect(result).toMatchObject({ truncated: true, totalBytes: 16 * 65_004 + 1 })
  expect(result.output).toMatch(/^first[^]*last$/)
})

test.each([
  ['line breaks', '\n'],
  ['quotes', '"'],
  ['quotes in lines', '"\n'],
])('a result with 1 MiB of %s fits into a function response', async (_, text) => {
  const data = text.repeat(65_536 / text.length)
  const { job, result } = await resultOf(Array.from({ length: 16 }, () => data))
  const { output } = result
  expect(output.length).toBeGreaterThan(300_000)
  expect(result).toMatchObject({ totalBytes: 1_048_576, nodes: [{ output }], truncated: output.length < 1_048_576 })
  // Lambda encodes the body as a JSON string. The largest payload adds half a megabyte.
  expect(Buffer.byteLength(JSON.stringify({ body: JSON.stringify(job) }))).toBeLessThan(5_000_000)
})

test('returns the output of an ended job without waiting, in one call', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  await runJob(enrolled, jobId)
  const { result, usage } = await measureUsage(() => readOutput(caller, jobId, 0, 20))
  expect(result).toMatchObject({ items: [], finished: true })
  expect(usage.calls).toEqual(['GetItem'])
})

test('polls at most four times per second while it waits for output', async () => {
  const { caller, jobId } = await waitingJob()
  const { result, usage } = await measureUsage(() => readOutput(caller, jobId, 0, 1))
  expect(result).toEqual({ items: [], nextOffset: 0, status: 'Queued', finished: false })
  expect(usage.calls.length).toBeLessThanOrEqual(4)
})
