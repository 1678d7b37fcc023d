import { randomBytes } from 'node:crypto'
import { Completion } from '@platform/contract/relay'
import * as Job from '@platform/core/jobs/job'
import { complete } from '@platform/core/jobs/complete'
import { append, readBytes } from '@platform/core/jobs/output'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, expectError } from '../../support/fixtures.ts'
import { advanceClock } from '../../support/clock.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { completionReport, dispatchedJob, readJobCounters } from '../support/jobs.ts'
import { readPendingEvents } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

async function waitingJobs(count: number, payload: object = {}) {
  const { caller, enrolled } = await callerWithCluster()
  const jobIds: string[] = []
  for (let index = 0; index < count; index++) jobIds.push(await dispatchedJob(caller, enrolled, payload))
  const beat = async (claimKey: string, change: object = {}) => {
    const report = { ...enrolled.heartbeat, claimKey, ...change }
    const { claims = [], jobs, moreJobs } = await heartbeat(enrolled.request(), report)
    return { claims, jobs, moreJobs, ids: claims.map(({ jobId }) => jobId) }
  }
  return { caller, enrolled, jobIds, beat }
}

test('a heartbeat claims the oldest jobs for its free slots, and the same key returns the same claims', async () => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(3)
  const firstBeat = await beat('key-0001', { freeSlots: 2 })
  expect(firstBeat).toMatchObject({ ids: jobIds.slice(0, 2), jobs: [], moreJobs: true })
  expect((await readJobCounters(caller, enrolled))[0]).toBe(3)
  const leases = ({ claims }: typeof firstBeat) => claims.map(({ leaseId, payload }) => ({ leaseId, payload }))
  const secondBeat = await beat('key-0001', { freeSlots: 0 })
  expect([leases(secondBeat), secondBeat.moreJobs]).toEqual([leases(firstBeat), true])
  const runningIds = firstBeat.ids
  expect(await beat('key-0002', { running: runningIds })).toMatchObject({ ids: jobIds.slice(2), moreJobs: false })
  expect(await readJobCounters(caller, enrolled)).toEqual([3, 1])
})

test('the same key claims further jobs once its claims have ended', async () => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(1)
  const { claims } = await beat('key-0001')
  await complete(enrolled.request(), jobIds[0]!, completionReport(enrolled, claims[0]!.leaseId))
  const nextId = await dispatchedJob(caller, enrolled)
  expect((await beat('key-0001')).ids).toEqual([nextId])
})

test('a heartbeat without waiting jobs takes two store calls', async () => {
  const { beat } = await waitingJobs(0)
  await beat('key-0001')
  expect(await countStoreCalls(() => beat('key-0001'))).toBe(2)
})

test.each([
  ['the same key', () => 'key-0001'],
  ['different keys', (index: number) => `key-000${index}`],
])('concurrent heartbeats with %s lease each job once', async (_, keyOf) => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(3)
  const answers = await Promise.all([0, 1, 2].map((index) => beat(keyOf(index)).catch(() => undefined)))
  const leases = new Map<string, Set<string>>()
  for (const { jobId, leaseId } of answers.flatMap((answer) => answer?.claims ?? []))
    leases.set(jobId, (leases.get(jobId) ?? new Set()).add(leaseId))
  expect([...leases.values()].map(({ size }) => size)).toEqual([...leases].map(() => 1))
  const { claims, jobs } = await beat('key-9999')
  expect(claims.length + jobs.length + leases.size).toBe(jobIds.length)
  expect((await readJobCounters(caller, enrolled))[0]).toBe(3)
})

test.each([
  ['a listed', 2, /^Update/, 2],
  ['a counted', 8, /^TransactWrite/, 1],
])('leaves out %s job that is cancelled in between', async (_, count, write, nth) => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(count)
  const runningIds = (await beat('key-0001', { freeSlots: count - 2 })).ids
  await beat('key-0002', { freeSlots: 0, running: runningIds })
  const [cancelledId = '', nextId = ''] = jobIds.slice(count - 2)
  runBefore(write, () => Job.cancel(caller, cancelledId), nth)
  const { ids, jobs, moreJobs } = await beat('key-0003')
  expect([[...ids, ...jobs], ids.length > 0 || moreJobs]).toEqual([[nextId], true])
  expect((await beat('key-0003')).ids).toEqual([nextId])
  expect((await Job.read(caller, nextId)).status).toBe('Running')
  expect((await readJobCounters(caller, enrolled))[0]).toBe(count - 1)
})

test('a repeated heartbeat that overtakes the first one returns all its claims', async () => {
  const { caller, jobIds, beat } = await waitingJobs(2)
  let overtaking: string[] = []
  runBefore(/^Update/, async () => void ({ ids: overtaking } = await beat('key-0001')), 3)
  const overtakenBeat = await beat('key-0001')
  expect(overtaking).toEqual(jobIds)
  expect(overtakenBeat.ids).toEqual(jobIds)
  for (const id of jobIds) expect((await Job.read(caller, id)).status).toBe('Running')
})

test('claims whose response was lost do not block the jobs that wait after them', async () => {
  const { jobIds, beat } = await waitingJobs(7)
  expect((await beat('key-0001', { freeSlots: 6 })).ids).toEqual(jobIds.slice(0, 6))
  expect(await beat('key-0002', { freeSlots: 1 })).toMatchObject({ ids: jobIds.slice(6), moreJobs: false })
})

test('an end records the start, unless the message about the claim or a renewed lease did', async () => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(3)
  const { claims, ids } = await beat('key-0001')
  expect(await readPendingEvents(caller, 'job.started')).toEqual([])
  await recordStartsAndEnds(caller.organisationId, jobIds.slice(0, 1))
  await recordStartsAndEnds(caller.organisationId, jobIds.slice(0, 1))
  advanceClock(151_000)
  await beat('key-0002', { running: jobIds.slice(1, 2) })
  expect((await readPendingEvents(caller, 'job.started')).map(({ subject }) => subject)).toEqual(jobIds.slice(0, 2))
  for (const { jobId, leaseId } of claims)
    await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  await recordStartsAndEnds(caller.organisationId, jobIds)
  const startEvents = await readPendingEvents(caller, 'job.started')
  expect(startEvents.map(({ subject }) => subject).toSorted()).toEqual(ids.toSorted())
})

test('starts that are recorded at the same time share a transaction, unless a job ends in between', async () => {
  const { caller, enrolled, jobIds, beat } = await waitingJobs(5)
  const { claims } = await beat('key-0001', { freeSlots: 5 })
  const recordEach = (ids: readonly string[]) =>
    Promise.all(ids.map((id) => recordStartsAndEnds(caller.organisationId, [id])))
  const { usage } = await measureUsage(() => recordEach(jobIds.slice(0, 2)))
  expect(usage.calls.filter((command) => command.startsWith('TransactWrite')).length).toBe(1)
  const { jobId, leaseId } = claims[2] ?? { jobId: '', leaseId: '' }
  runBefore(/^TransactWrite/, () => complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)))
  await recordEach(jobIds.slice(2))
  const startEvents = await readPendingEvents(caller, 'job.started')
  expect(startEvents.map(({ subject }) => subject).toSorted()).toEqual(jobIds.toSorted())
})

test('claims no job for a relay that does not know the statement key, nor more than 1 MiB of payloads', async () => {
  const { jobIds, beat } = await waitingJobs(6, { script: 'x'.repeat(262_000) })
  expect(await beat('key-0001', { statementKey: 'unknown' })).toMatchObject({ ids: [], jobs: [], moreJobs: true })
  expect(await beat('key-0001', { freeSlots: 10 })).toMatchObject({ ids: jobIds.slice(0, 4), moreJobs: true })
})

const randomText = () => randomBytes(700).toString('base64')

test('returns each job with its own payload, whether its record contains it or not', async () => {
  const { caller, enrolled, beat } = await waitingJobs(0)
  const scripts = [randomText(), 'true', randomText()]
  for (const script of scripts) await dispatchedJob(caller, enrolled, { script })
  const { claims } = await beat('key-0001')
  expect(claims.map(({ payload }) => payload['script'])).toEqual(scripts)
})

const nodeOf = ({ enrolled }: Awaited<ReturnType<typeof waitingJobs>>) => enrolled.relay.nodes[0]!.id

async function claimedJob() {
  const stage = await waitingJobs(1)
  const { claims } = await stage.beat('key-0001')
  const { jobId, leaseId } = claims[0]!
  const output = (seq: number, data: string) => ({
    seq,
    chunks: [{ nodeId: nodeOf(stage), stream: 'stdout' as const, data }],
  })
  const finish = (last?: ReturnType<typeof output>) =>
    complete(stage.enrolled.request(), jobId, { ...completionReport(stage.enrolled, leaseId), output: last })
  const read = async () => [
    (await Job.read(stage.caller, jobId)).result?.output,
    (await readBytes(stage.caller, jobId, 0)).bytes.toString(),
  ]
  return { ...stage, jobId, leaseId, output, finish, read }
}

test('a completion carries the last output, once', async () => {
  const { enrolled, jobId, leaseId, output, finish, read } = await claimedJob()
  await append(enrolled.request(), jobId, { leaseId, ...output(0, 'first ') })
  await expectError(finish(output(2, 'lost')), 'output_out_of_order')
  expect(await finish(output(1, 'last'))).toMatchObject({ status: 'Completed' })
  expect(await finish(output(1, 'last'))).toMatchObject({ status: 'Completed' })
  expect(await finish()).toMatchObject({ status: 'Completed' })
  expect(await read()).toEqual(['first last', 'first last'])
})

test('a completion may carry all output, and output that is already stored is skipped', async () => {
  const repeatedClaim = await claimedJob()
  await append(repeatedClaim.enrolled.request(), repeatedClaim.jobId, {
    leaseId: repeatedClaim.leaseId,
    ...repeatedClaim.output(0, 'all'),
  })
  await repeatedClaim.finish(repeatedClaim.output(0, 'all'))
  const singleClaim = await claimedJob()
  await singleClaim.finish(singleClaim.output(0, 'all'))
  expect([await repeatedClaim.read(), await singleClaim.read()]).toEqual([
    ['all', 'all'],
    ['all', 'all'],
  ])
})

test('limits the output of a completion to 64 KiB', () => {
  const chunk = { nodeId: `node_${'0'.repeat(26)}`, stream: 'stdout', data: 'x'.repeat(32_769) }
  const report = { leaseId: 'x', outcome: 'exited', exitCode: 0, nodes: [] }
  const sizes = [1, 2].map((count) => ({
    ...report,
    output: { seq: 0, chunks: Array.from({ length: count }, () => chunk) },
  }))
  expect(sizes.map((body) => Completion.safeParse(body).success)).toEqual([true, false])
})
