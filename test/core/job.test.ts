import { beforeAll, expect, test } from 'vitest'
import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/cluster'
import { dispatch } from '@platform/core/dispatch'
import * as Job from '@platform/core/job'
import { claim, complete } from '@platform/core/lease'
import { append, readOutput } from '@platform/core/output'
import { heartbeat } from '@platform/core/presence'
import { sweep } from '@platform/core/sweep'
import { callerOf, enrolledCluster, refusalOf, started } from '../support/world.ts'

beforeAll(started)

type World = Awaited<ReturnType<typeof enrolledCluster>>

const script = (clusterId: string, payload: object = {}, more: object = {}) => ({
  clusterId,
  type: 'InvokeScript',
  payload: { script: 'echo hello', ...payload },
  ...more,
})

/** A job that waits in the inbox of its cluster. */
async function waitingJob(caller: Caller, { cluster }: World, payload: object = {}, more: object = {}) {
  const { id } = await Job.submit(caller, script(cluster.id, payload, more))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  return id
}

const completion = (world: World, leaseId: string, exitCode: number | null = 0, outcome = 'exited' as const) => ({
  leaseId,
  outcome,
  exitCode,
  nodes: world.relay.nodes.map(({ id }) => ({ nodeId: id, exitCode })),
})

/** The counters that a cluster keeps of its jobs. */
const counters = async (caller: Caller, { cluster }: World) => {
  const row = await Cluster.find(caller.organisationId, cluster.id)
  return [row?.activeJobs, row?.waitingJobs]
}

test('a job is queued, found by a beat, claimed, and completed with its output', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const nodeId = world.relay.nodes[0]?.id ?? ''
  const jobId = await waitingJob(caller, world)
  expect((await heartbeat(world.request(), world.beat)).answer.jobs).toEqual([jobId])
  const { leaseId, payload, statement } = await claim(world.request(), jobId, undefined)
  expect(payload).toEqual({ script: 'echo hello' })
  expect(statement.split('.')).toHaveLength(3)
  expect((await heartbeat(world.request(), world.beat)).answer.jobs).toEqual([])
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Running' })
  await append(world.request(), jobId, { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'hel' })
  await append(world.request(), jobId, { leaseId, seq: 1, nodeId, stream: 'stdout', data: 'lo\n' })
  expect(await readOutput(caller, jobId, 3)).toMatchObject({
    items: [{ offset: 3, data: 'lo\n' }],
    nextOffset: 6,
    finished: false,
  })
  expect(await readOutput(caller, jobId, 1)).toMatchObject({ items: [{ offset: 1, data: 'el' }, { offset: 3 }] })
  expect(await complete(world.request(), jobId, completion(world, leaseId))).toEqual({ jobId, status: 'Completed' })
  expect(await readOutput(caller, jobId, 6)).toMatchObject({ items: [], nextOffset: 6, finished: true })
  expect(await Job.read(caller, jobId)).toMatchObject({
    status: 'Completed',
    result: {
      output: 'hello\n',
      exitCode: 0,
      truncated: false,
      totalBytes: 6,
      nodes: [{ nodeId, exitCode: 0, output: 'hello\n' }],
    },
  })
  expect(await counters(caller, world)).toEqual([0, 0])
})

test.each([
  ['an unknown type', { type: 'Nope', payload: {} }, 'unknown_job_type'],
  ['a type of the platform itself', { type: 'ModuleInstall', payload: {} }, 'job_type_not_submittable'],
  ['no script', { payload: {} }, 'validation_failed'],
  ['a script with NUL', { payload: { script: 'a\0b' } }, 'validation_failed'],
  ['too large a payload', { payload: { script: 'ä'.repeat(200_000) } }, 'payload_too_large'],
  ['a node of another cluster', { payload: { script: 'x', targetNodeIds: ['node_x'] } }, 'node_not_in_cluster'],
  ['an unknown cluster', { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }, 'cluster_not_found'],
  [
    'an unknown cluster with targets',
    { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa', payload: { script: 'x', targetNodeIds: ['node_x'] } },
    'cluster_not_found',
  ],
  ['no id at all', { clusterId: '#' }, 'cluster_not_found'],
])('a job with %s is refused and leaves nothing behind', async (_, change, code) => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  expect(await refusalOf(Job.submit(caller, { ...script(world.cluster.id), ...change }))).toBe(code)
  expect(await counters(caller, world)).toEqual([0, 0])
})

test('another organisation can neither submit to a cluster nor see its jobs', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const stranger = callerOf()
  expect(await refusalOf(Job.submit(stranger, script(world.cluster.id)))).toBe('cluster_not_found')
  for (const call of [Job.read(stranger, jobId), Job.cancel(stranger, jobId), readOutput(stranger, jobId, 0)]) {
    expect(await refusalOf(call)).toBe('job_not_found')
  }
  const other = await enrolledCluster(caller)
  expect(await refusalOf(claim(other.request(), jobId, undefined))).toBe('job_not_found')
})

test('a message that comes twice or at once puts a job into the inbox once', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const { id } = await Job.submit(caller, script(world.cluster.id))
  await Promise.all(Array.from({ length: 5 }, () => dispatch({ organisationId: caller.organisationId, jobId: id })))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  expect(await counters(caller, world)).toEqual([1, 1])
})

test('of many claims of one job one wins, and the winner may repeat its own', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const codes = await Promise.all(
    Array.from({ length: 6 }, (_, index) => refusalOf(claim(world.request(), jobId, `key-${index}`))),
  )
  expect(codes.filter((code) => code === 'nothing was refused')).toHaveLength(1)
  expect(codes.filter((code) => code === 'job_not_claimable')).toHaveLength(5)
  const winner = `key-${codes.indexOf('nothing was refused')}`
  const again = await Promise.all([claim(world.request(), jobId, winner), claim(world.request(), jobId, winner)])
  expect(again[0]?.leaseId).toBe(again[1]?.leaseId)
  expect(await counters(caller, world)).toEqual([1, 0])
})

test('a signed request works once', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const [first, second] = [await waitingJob(caller, world), await waitingJob(caller, world)]
  const same = world.request()
  await claim(same, first, undefined)
  expect(await refusalOf(claim(same, second, undefined))).toBe('unauthenticated')
})

test('output with the same seq is kept once, ahead of its turn it is refused', async () => {
  const caller = callerOf()
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
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const block = (index: number) => `${String(index).padStart(3, '0')}é${'x'.repeat(65_530)}`
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

test.each([
  ['exited', 3, 'Failed', 'exit_nonzero'],
  ['timed_out', null, 'Failed', 'execution_timeout'],
  ['rejected', null, 'Failed', 'relay_rejected'],
  ['interrupted', null, 'Failed', 'interrupted'],
  ['cancelled', null, 'Cancelled', 'cancelled_by_user'],
] as const)(
  'a run that %s with exit code %s ends %s (%s), and repeating the report answers the same',
  async (outcome, exitCode, status, statusReason) => {
    const caller = callerOf()
    const world = await enrolledCluster(caller)
    const jobId = await waitingJob(caller, world)
    const { leaseId } = await claim(world.request(), jobId, undefined)
    const report = { ...completion(world, leaseId, exitCode), outcome }
    const answers = await Promise.all([
      complete(world.request(), jobId, report),
      complete(world.request(), jobId, report),
    ])
    expect(answers).toEqual([
      { jobId, status },
      { jobId, status },
    ])
    expect(await Job.read(caller, jobId)).toMatchObject({ status, statusReason, result: { exitCode } })
    expect(await counters(caller, world)).toEqual([0, 0])
    expect(await refusalOf(Job.cancel(caller, jobId))).toBe('job_already_finished')
  },
)

test('a queued job is cancelled at once, before or after its message was read', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const announced = await waitingJob(caller, world)
  const { id: silent } = await Job.submit(caller, script(world.cluster.id))
  for (const jobId of [announced, silent]) {
    expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
    await dispatch({ organisationId: caller.organisationId, jobId })
    expect(await refusalOf(claim(world.request(), jobId, undefined))).toBe('job_not_claimable')
  }
  expect(await counters(caller, world)).toEqual([0, 0])
  expect((await heartbeat(world.request(), world.beat)).answer.jobs).toEqual([])
})

test('a running job is asked to stop by beats and output, and ends after a minute without confirmation', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Running' })
  expect(await Job.cancel(caller, jobId)).toHaveProperty('cancelRequestedAt')
  const { answer } = await heartbeat(world.request(), { ...world.beat, running: [jobId] })
  expect(answer.cancel).toEqual([jobId])
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'x' }
  expect(await append(world.request(), jobId, chunk)).toMatchObject({ cancel: true })
  shiftClock(61_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  expect(await refusalOf(complete(world.request(), jobId, completion(world, leaseId)))).toBe('job_already_finished')
  expect(await refusalOf(complete(world.request(), jobId, completion(world, leaseId)))).toBe('job_already_finished')
  expect(await Job.read(caller, jobId)).toMatchObject({
    status: 'Cancelled',
    lateResult: { outcome: 'exited', exitCode: 0 },
  })
  expect(await counters(caller, world)).toEqual([0, 0])
  shiftClock(-61_000)
})

test('the sweep announces again what nobody heard of, and fails what was not delivered in time', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world, {}, { deliverWithinSeconds: 60 })
  const { id: silent } = await Job.submit(caller, script(world.cluster.id, {}, { deliverWithinSeconds: 60 }))
  shiftClock(61_000)
  await sweep()
  for (const id of [jobId, silent]) {
    expect(await Job.read(caller, id)).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  }
  expect(await counters(caller, world)).toEqual([0, 0])
  shiftClock(-61_000)
})

test('a job whose relay falls silent loses its lease after 600 s; beats that name it keep it', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const [kept, lost] = [await waitingJob(caller, world), await waitingJob(caller, world)]
  await claim(world.request(), kept, undefined)
  await claim(world.request(), lost, undefined)
  shiftClock(300_000)
  await heartbeat(world.request(), { ...world.beat, running: [kept] })
  shiftClock(301_000)
  await sweep()
  expect(await Job.read(caller, kept)).toMatchObject({ status: 'Running' })
  expect(await Job.read(caller, lost)).toMatchObject({ status: 'Failed', statusReason: 'lease_lost' })
  shiftClock(-601_000)
})

test('a job that outlives its time limit is ended by the server when the relay does not', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world, { timeoutSeconds: 5 })
  await claim(world.request(), jobId, undefined)
  shiftClock(66_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'execution_timeout' })
  shiftClock(-66_000)
})

test('a cluster with a queued or running job stays; after the job has ended it goes, and its jobs with it', async () => {
  const caller = callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  expect(await refusalOf(Cluster.remove(caller, world.cluster.id))).toBe('cluster_has_active_jobs')
  await Job.cancel(caller, jobId)
  await Cluster.remove(caller, world.cluster.id)
  await sweep()
  expect(await refusalOf(Job.read(caller, jobId))).toBe('job_not_found')
})

test('submitting and removing at the same moment leave either the job or no cluster, never an orphan', async () => {
  for (let round = 0; round < 20; round++) {
    const caller = callerOf()
    const { id: clusterId } = await Cluster.register(caller, { name: 'contested', type: 'Hypervisor' })
    const [submitted, removed] = await Promise.all([
      refusalOf(Job.submit(caller, script(clusterId))),
      refusalOf(Cluster.remove(caller, clusterId)),
    ])
    const outcome = `${submitted} / ${removed}`
    expect(['nothing was refused / cluster_has_active_jobs', 'cluster_not_found / nothing was refused']).toContain(
      outcome,
    )
  }
})
