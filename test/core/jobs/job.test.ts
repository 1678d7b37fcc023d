import { beforeAll, expect, test } from 'vitest'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { append, readOutput } from '@platform/core/jobs/output'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { completion, counters, script, waitingJob } from '../support/jobs.ts'
import { atStoreCalls } from '../support/store-hook.ts'

beforeAll(started)

test('a job is queued, found by a beat, claimed, and completed with its output', async () => {
  const caller = await callerOf()
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  expect(await refusalOf(Job.submit(caller, { ...script(world.cluster.id), ...change }))).toBe(code)
  expect(await counters(caller, world)).toEqual([0, 0])
})

test('another organisation can neither submit to a cluster nor see its jobs', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const stranger = await callerOf()
  expect(await refusalOf(Job.submit(stranger, script(world.cluster.id)))).toBe('cluster_not_found')
  const calls = [Job.read(stranger, jobId), Job.cancel(stranger, jobId), readOutput(stranger, jobId, 0)]
  for (const refusal of await Promise.all(calls.map(refusalOf))) expect(refusal).toBe('job_not_found')
  const other = await enrolledCluster(caller)
  expect(await refusalOf(claim(other.request(), jobId, undefined))).toBe('job_not_found')
})

test('a message that comes twice or at once puts a job into the inbox once', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { id } = await Job.submit(caller, script(world.cluster.id))
  await Promise.all(Array.from({ length: 5 }, () => dispatch({ organisationId: caller.organisationId, jobId: id })))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  expect(await counters(caller, world)).toEqual([1, 1])
})

test('of many claims of one job one wins, and the winner may repeat its own', async () => {
  const caller = await callerOf()
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const [first, second] = [await waitingJob(caller, world), await waitingJob(caller, world)]
  const same = world.request()
  await claim(same, first, undefined)
  expect(await refusalOf(claim(same, second, undefined))).toBe('unauthenticated')
})

test.each([
  ['exited', 3, 'Failed', 'exit_nonzero'],
  ['timed_out', null, 'Failed', 'execution_timeout'],
  ['rejected', null, 'Failed', 'relay_rejected'],
  ['interrupted', null, 'Failed', 'interrupted'],
  ['cancelled', null, 'Failed', 'interrupted'],
] as const)(
  'a run that %s with exit code %s ends %s (%s), and repeating the report answers the same',
  async (outcome, exitCode, status, statusReason) => {
    const caller = await callerOf()
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

test('submitting and removing at the same moment leave either the job or no cluster, never an orphan', async () => {
  for (let round = 0; round < 20; round++) {
    const caller = await callerOf()
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

test('a job that ends while it is read has its result', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  await complete(world.request(), jobId, completion(world, leaseId))
  const { sk } = keys.result(caller.organisationId, jobId)
  // The store reads the items of a batch one by one: the result was not there yet.
  using _ = atStoreCalls({
    after: async ({ command }, answer) => {
      if (!command.startsWith('BatchGet')) return
      for (const [table, items] of Object.entries<any[]>(answer.Responses)) {
        answer.Responses[table] = items.filter((item) => item.sk !== sk)
      }
    },
  })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { exitCode: 0 } })
})
