import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { append, readOutput } from '@platform/core/jobs/output'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, newCaller, expectError } from '../../support/fixtures.ts'
import { completionReport, dispatchedJob, runJob, runningJob, waitingJob } from '../support/jobs.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

test('output with the same seq is kept once, ahead of its turn it is refused', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'once' }
  await Promise.all([1, 2, 3].map(() => append(enrolled.request(), jobId, chunk)))
  expect(await append(enrolled.request(), jobId, chunk)).toEqual({ nextSeq: 1, cancel: false })
  await expectError(append(enrolled.request(), jobId, { ...chunk, seq: 5 }), 'output_out_of_order')
  await expectError(append(enrolled.request(), jobId, { ...chunk, leaseId: 'lease_x' }), 'lease_not_held')
  expect((await readOutput(caller, jobId, 0)).items.map(({ data }) => data)).toEqual(['once'])
})

test('a job that printed thousands of tiny pieces ends, with all of them', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  const pieces = 300
  for (let seq = 0; seq < pieces; seq++) {
    await append(enrolled.request(), jobId, { leaseId, seq, nodeId: 'node', stream: 'stdout', data: '.' })
  }
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const { status, result } = await Job.read(caller, jobId)
  expect([status, result?.output]).toEqual(['Completed', '.'.repeat(pieces)])
})

test('output that JSON would blow up is cut to what an answer can hold, and says so', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const jobId = await dispatchedJob(caller, enrolled)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  for (let seq = 0; seq < 16; seq++) {
    const data = seq === 0 ? `first${'\0'.repeat(65_000)}` : `${'\0'.repeat(65_000)}last`
    await append(enrolled.request(), jobId, { leaseId, seq, nodeId, stream: 'stdout', data })
  }
  expect(JSON.stringify(await readOutput(caller, jobId, 0)).length).toBeLessThan(6_000_000)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const job = await Job.read(caller, jobId)
  expect(JSON.stringify(job).length).toBeLessThan(6_000_000)
  expect(job.result).toMatchObject({ truncated: true, totalBytes: 16 * 65_004 + 1 })
  expect(job.result?.output.startsWith('first')).toBe(true)
  expect(job.result?.output.endsWith('last')).toBe(true)
})

/** What Lambda carries of an answer: the body is a text of its JSON. */
const carriedBytes = (body: unknown): number => Buffer.byteLength(JSON.stringify({ body: JSON.stringify(body) }))

test.each([
  ['line breaks', '\n'],
  ['quotes', '"'],
  ['backslashes', '\\'],
  ['control characters', '\u001b'],
  ['quotes in lines', '"\n'],
])('a job that has printed 1 MiB of %s can be read, whoever carries the answer', async (_, piece) => {
  const { caller, enrolled } = await callerWithCluster()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const jobId = await dispatchedJob(caller, enrolled)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  const data = piece.repeat(65_536 / piece.length)
  for (let seq = 0; seq < 16; seq++) {
    await append(enrolled.request(), jobId, { leaseId, seq, nodeId, stream: 'stdout', data })
  }
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const { result, ...job } = await Job.read(caller, jobId)
  const output = result?.output ?? ''
  expect(output.length).toBeGreaterThan(300_000)
  expect(result).toMatchObject({ totalBytes: 1_048_576, nodes: [{ output }], truncated: output.length < 1_048_576 })
  // The largest payload takes half a megabyte more.
  expect(carriedBytes({ ...job, result })).toBeLessThan(5_000_000)
})

const patience = 20

test('what is there already, or will never come, is not waited for', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  await runJob(enrolled, jobId)
  const { result, usage } = await measureUsage(() => readOutput(caller, jobId, 0, patience))
  expect(result).toMatchObject({ items: [], finished: true })
  expect(usage.calls).toEqual(['GetItem'])
  await expectError(readOutput(await newCaller(), jobId, 0, patience), 'job_not_found')
})

test('a second of waiting is a few looks', async () => {
  const { caller, jobId } = await waitingJob()
  const startedAtMs = performance.now()
  const { result, usage } = await measureUsage(() => readOutput(caller, jobId, 0, 1))
  expect(performance.now() - startedAtMs).toBeGreaterThan(950)
  expect(result).toEqual({ items: [], nextOffset: 0, status: 'Queued', finished: false })
  expect(usage.calls.length).toBeLessThanOrEqual(4)
})
