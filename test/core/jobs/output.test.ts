import { beforeAll, expect, test } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { append, readOutput } from '@platform/core/jobs/output'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { completion, waitingJob } from '../support/jobs.ts'

beforeAll(started)

const block = (index: number) => `${String(index).padStart(3, '0')}é${'x'.repeat(65_530)}`

test('output with the same seq is kept once, ahead of its turn it is refused', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'once' }
  await Promise.all([1, 2, 3].map(() => append(world.request(), jobId, chunk)))
  expect(await append(world.request(), jobId, chunk)).toEqual({ nextSeq: 1, cancel: false })
  expect(await refusalOf(append(world.request(), jobId, { ...chunk, seq: 5 }))).toBe('output_out_of_order')
  expect(await refusalOf(append(world.request(), jobId, { ...chunk, leaseId: 'lease_x' }))).toBe('lease_not_held')
  expect((await readOutput(caller, jobId, 0)).items.map(({ data }) => data)).toEqual(['once'])
})

test('of 3 MiB of output the first 256 KiB and the last 768 KiB are kept', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  for (let seq = 0; seq < 48; seq++) {
    await append(world.request(), jobId, { leaseId, seq, nodeId: 'node', stream: 'stdout', data: block(seq) })
  }
  await complete(world.request(), jobId, completion(world, leaseId))
  const whole = Buffer.from(Array.from({ length: 48 }, (_, index) => block(index)).join(''))
  const { result } = await Job.read(caller, jobId)
  expect(result).toMatchObject({ truncated: true, totalBytes: whole.length })
  const kept = Buffer.from(result?.output ?? '')
  expect(kept.subarray(0, 262_100).equals(whole.subarray(0, 262_100))).toBe(true)
  expect(kept.subarray(-786_000).equals(whole.subarray(-786_000))).toBe(true)
  expect(kept.length).toBeLessThanOrEqual(1_048_576)
})

test('a job that printed thousands of tiny pieces ends, with all of them', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const pieces = 300
  for (let seq = 0; seq < pieces; seq++) {
    await append(world.request(), jobId, { leaseId, seq, nodeId: 'node', stream: 'stdout', data: '.' })
  }
  await complete(world.request(), jobId, completion(world, leaseId))
  const { status, result } = await Job.read(caller, jobId)
  expect([status, result?.output]).toEqual(['Completed', '.'.repeat(pieces)])
})

test('output that JSON would blow up is cut to what an answer can hold, and says so', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const nodeId = world.relay.nodes[0]?.id ?? ''
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  for (let seq = 0; seq < 16; seq++) {
    const data = seq === 0 ? `first${'\0'.repeat(65_000)}` : `${'\0'.repeat(65_000)}last`
    await append(world.request(), jobId, { leaseId, seq, nodeId, stream: 'stdout', data })
  }
  expect(JSON.stringify(await readOutput(caller, jobId, 0)).length).toBeLessThan(6_000_000)
  await complete(world.request(), jobId, completion(world, leaseId))
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const nodeId = world.relay.nodes[0]?.id ?? ''
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const data = piece.repeat(65_536 / piece.length)
  for (let seq = 0; seq < 16; seq++) {
    await append(world.request(), jobId, { leaseId, seq, nodeId, stream: 'stdout', data })
  }
  await complete(world.request(), jobId, completion(world, leaseId))
  const { result, ...job } = await Job.read(caller, jobId)
  const output = result?.output ?? ''
  expect(output.length).toBeGreaterThan(300_000)
  expect(result).toMatchObject({ totalBytes: 1_048_576, nodes: [{ output }], truncated: output.length < 1_048_576 })
  // The largest payload takes half a megabyte more.
  expect(carriedBytes({ ...job, result })).toBeLessThan(5_000_000)
})
