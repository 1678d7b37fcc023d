import { beforeAll, expect, test } from 'vitest'
import { get, getMany, batchPut, query } from '@platform/core/db/table'
import * as keys from '@platform/core/db/keys'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { newId } from '@platform/core/id'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { append } from '@platform/core/jobs/output'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { sweep } from '@platform/core/background/sweep'
import { callerOf, enrolledCluster, enrollRequest, refusalOf, started } from '../../support/world.ts'
import { completion, counters, script, waitingJob } from '../support/jobs.ts'

beforeAll(started)

test('a queued job is cancelled at once, before or after its message was read', async () => {
  const caller = await callerOf()
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
  const caller = await callerOf()
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
  const caller = await callerOf()
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

test('a beat keeps the leases of all the jobs that it names, be they hundreds', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const first = await waitingJob(caller, world)
  await claim(world.request(), first, undefined)
  const keyOf = (id: string) => keys.job(caller.organisationId, id)
  const row = await get(keyOf(first))
  const running = Array.from({ length: 250 }, () => newId('job'))
  await batchPut(running.map((id) => ({ ...row, ...keyOf(id), id })))
  shiftClock(300_000)
  const { answer } = await heartbeat(world.request(), { ...world.beat, running: [...running, newId('job')] })
  expect(answer.cancel).toHaveLength(1)
  const kept = await getMany(running.map(keyOf))
  const renewed = kept.filter((job) => Number(job?.['leaseRenewedAtMs']) > Number(row?.['leaseRenewedAtMs']))
  expect(renewed).toHaveLength(running.length)
  shiftClock(-300_000)
})

test('a job whose relay falls silent loses its lease after 600 s; beats that name it keep it', async () => {
  const caller = await callerOf()
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
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world, { timeoutSeconds: 5 })
  await claim(world.request(), jobId, undefined)
  shiftClock(66_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'execution_timeout' })
  shiftClock(-66_000)
})

test('a cluster with a queued or running job stays; after the job has ended it goes, and its jobs with it', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  expect(await refusalOf(Cluster.remove(caller, world.cluster.id))).toBe('cluster_has_active_jobs')
  await Job.cancel(caller, jobId)
  await Cluster.remove(caller, world.cluster.id)
  await sweep()
  expect(await refusalOf(Job.read(caller, jobId))).toBe('job_not_found')
})

test('of a removed cluster not even the payload of a job with much output is left', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  for (let seq = 0; seq < 20; seq++) {
    await append(world.request(), jobId, { leaseId, seq, nodeId: 'node', stream: 'stdout', data: 'x'.repeat(65_536) })
  }
  await complete(world.request(), jobId, completion(world, leaseId))
  await Cluster.remove(caller, world.cluster.id)
  await sweep()
  expect((await query({ pk: keys.job(caller.organisationId, jobId).pk })).items).toEqual([])
})

test('a relay that was replaced can neither claim, nor write output, nor end its job', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const [running, waiting] = [await waitingJob(caller, world), await waitingJob(caller, world)]
  const { leaseId } = await claim(world.request(), running, 'key')
  const { enrollmentToken } = await issue(caller, world.cluster.id)
  await enroll(enrollRequest(enrollmentToken))
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'x' }
  const calls = [
    claim(world.request(), running, 'key'),
    claim(world.request(), waiting, 'other'),
    append(world.request(), running, chunk),
    complete(world.request(), running, completion(world, leaseId)),
  ]
  expect(await Promise.all(calls.map(refusalOf))).toEqual(Array.from(calls, () => 'unauthenticated'))
})

test('a run that its relay confirms as cancelled ends Cancelled', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  await Job.cancel(caller, jobId)
  const report = { ...completion(world, leaseId, null), outcome: 'cancelled' as const }
  expect(await complete(world.request(), jobId, report)).toEqual({ jobId, status: 'Cancelled' })
})

test('the first exit code that is not zero is the exit code of the job', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller, ['a', 'b', 'c'])
  const jobId = await waitingJob(caller, world)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const nodes = world.relay.nodes.map(({ id }, index) => ({ nodeId: id, exitCode: index * 3 }))
  await complete(world.request(), jobId, { leaseId, outcome: 'exited', exitCode: 0, nodes })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', result: { exitCode: 3 } })
})
