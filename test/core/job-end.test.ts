import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/cluster'
import { dispatch } from '@platform/core/dispatch'
import * as Job from '@platform/core/job'
import { claim, complete } from '@platform/core/lease'
import { append } from '@platform/core/output'
import { heartbeat } from '@platform/core/presence'
import { sweep } from '@platform/core/sweep'
import { callerOf, enrolledCluster, refusalOf, started } from '../support/world.ts'
import { completion, counters, script, waitingJob } from './support/jobs.ts'

beforeAll(started)

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
