import { outboxRetryMs } from '@platform/core/aws/queues'
import { sweep } from '@platform/core/background/sweep'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, getMany, query, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { cancelConfirmMs } from '@platform/core/jobs/cancel'
import { claim, nextCheckWhileRunning, renewLease } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { enforceDeadline } from '@platform/core/jobs/deadlines'
import * as Job from '@platform/core/jobs/job'
import { append } from '@platform/core/jobs/output'
import { parseJob } from '@platform/core/jobs/record'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  enrollRequest,
  errorCodeOf,
  newCaller,
  expectError,
} from '../../support/fixtures.ts'
import { completionReport, dispatchedJob, jobCounters, runningJob, scriptJob, waitingJob } from '../support/jobs.ts'
import { messagesSentBy } from '../support/messages.ts'

/** What a look at a job does whose time has not come: it is filed for when it has. Those that are out of time: end.test.ts. */

beforeAll(bootstrapPlatform)

async function environment() {
  const caller = await newCaller()
  const cluster = await enrolledCluster(caller)
  const itemOf = async (jobId: string) => (await get(keys.job(caller.organisationId, jobId))) ?? {}
  const rowOf = async (jobId: string) => parseJob(await itemOf(jobId))
  const dueOf = async (jobId: string) => keys.dueTimeOf((await itemOf(jobId))['duesk'] as string | undefined)
  /** As filed by somebody who knew less: for now. */
  const fileForNow = (jobId: string) => update(keys.job(caller.organisationId, jobId), { set: keys.due(jobId, now()) })
  const look = async (jobId: string) => enforceDeadline(await rowOf(jobId))
  return { caller, cluster, rowOf, dueOf, fileForNow, look }
}

test('a job that was never dispatched is announced again, and looked at again soon, or when it expires', async () => {
  const { caller, cluster, rowOf, dueOf, look } = await environment()
  const patient = await Job.submit(caller, scriptJob(cluster.cluster.id))
  const hasty = await Job.submit(caller, scriptJob(cluster.cluster.id, {}, { deliverWithinSeconds: 60 }))
  advanceClock(50_000)
  for (const { id } of [patient, hasty]) {
    const message = { organisationId: caller.organisationId, jobId: id }
    expect(await messagesSentBy(config.PLAT_QUEUE_JOBS, () => look(id))).toEqual([message])
  }
  expect(Math.abs((await dueOf(patient.id)) - now() - outboxRetryMs)).toBeLessThan(10_000)
  expect(await dueOf(hasty.id)).toBe((await rowOf(hasty.id)).expiresAtMs)
})

test('a job that waits in an inbox is looked at when it expires, and told to nobody', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await environment()
  const id = await dispatchedJob(caller, cluster)
  await fileForNow(id)
  expect(await messagesSentBy(config.PLAT_QUEUE_JOBS, () => look(id))).toEqual([])
  expect(await dueOf(id)).toBe((await rowOf(id)).expiresAtMs)
})

test('a running job is looked at when it is due; a lease that was renewed meanwhile is not overlooked', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await environment()
  const id = await dispatchedJob(caller, cluster)
  await claim(cluster.request(), id, undefined)
  await fileForNow(id)
  await look(id)
  expect(await dueOf(id)).toBe(nextCheckWhileRunning(await rowOf(id), cancelConfirmMs))

  const asRead = await rowOf(id)
  advanceClock(200_000)
  await renewLease(asRead)
  await fileForNow(id)
  const filedMs = await dueOf(id)
  await enforceDeadline(asRead)
  expect(await dueOf(id)).toBe(filedMs)
})

test('a job that is over is looked at no more', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await environment()
  const id = await dispatchedJob(caller, cluster)
  await Job.cancel(caller, id)
  await fileForNow(id)
  await look(id)
  expect([(await rowOf(id)).status, await dueOf(id)]).toEqual(['Cancelled', 0])
})

test('a running job is asked to stop by beats and output, and ends after a minute without confirmation', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  expect(await Job.cancel(caller, jobId)).toMatchObject({ status: 'Running' })
  expect(await Job.cancel(caller, jobId)).toHaveProperty('cancelRequestedAt')
  const { response } = await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [jobId] })
  expect(response.cancel).toEqual([jobId])
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'x' }
  expect(await append(enrolled.request(), jobId, chunk)).toMatchObject({ cancel: true })
  advanceClock(61_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Cancelled', statusReason: 'cancelled_by_user' })
  await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'job_already_finished')
  await expectError(complete(enrolled.request(), jobId, completionReport(enrolled, leaseId)), 'job_already_finished')
  expect(await Job.read(caller, jobId)).toMatchObject({
    status: 'Cancelled',
    lateResult: { outcome: 'exited', exitCode: 0 },
  })
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('the sweep announces again what nobody heard of, and fails what was not delivered in time', async () => {
  const { caller, enrolled, jobId } = await waitingJob({}, { deliverWithinSeconds: 60 })
  const { id: silent } = await Job.submit(caller, scriptJob(enrolled.cluster.id, {}, { deliverWithinSeconds: 60 }))
  advanceClock(61_000)
  await sweep()
  for (const id of [jobId, silent]) {
    expect(await Job.read(caller, id)).toMatchObject({ status: 'Failed', statusReason: 'delivery_timeout' })
  }
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('a beat keeps the leases of all the jobs that it names, be they hundreds', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const first = await dispatchedJob(caller, enrolled)
  await claim(enrolled.request(), first, undefined)
  const keyOf = (id: string) => keys.job(caller.organisationId, id)
  const row = await get(keyOf(first))
  const running = Array.from({ length: 250 }, () => newId('job'))
  await batchPut(running.map((id) => ({ ...row, ...keyOf(id), id })))
  advanceClock(300_000)
  const { response } = await heartbeat(enrolled.request(), {
    ...enrolled.heartbeat,
    running: [...running, newId('job')],
  })
  expect(response.cancel).toHaveLength(1)
  const kept = await getMany(running.map(keyOf))
  const renewed = kept.filter((job) => Number(job?.['leaseRenewedAtMs']) > Number(row?.['leaseRenewedAtMs']))
  expect(renewed).toHaveLength(running.length)
})

test('a job whose relay falls silent loses its lease after 600 s; beats that name it keep it', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const [kept, lost] = [await dispatchedJob(caller, enrolled), await dispatchedJob(caller, enrolled)]
  await claim(enrolled.request(), kept, undefined)
  await claim(enrolled.request(), lost, undefined)
  advanceClock(300_000)
  await heartbeat(enrolled.request(), { ...enrolled.heartbeat, running: [kept] })
  advanceClock(301_000)
  await sweep()
  expect(await Job.read(caller, kept)).toMatchObject({ status: 'Running' })
  expect(await Job.read(caller, lost)).toMatchObject({ status: 'Failed', statusReason: 'lease_lost' })
})

test('a job that outlives its time limit is ended by the server when the relay does not', async () => {
  const { caller, enrolled, jobId } = await waitingJob({ timeoutSeconds: 5 })
  await claim(enrolled.request(), jobId, undefined)
  advanceClock(66_000)
  await sweep()
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'execution_timeout' })
})

test('of a removed cluster not even the payload of a job with much output is left', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  for (let seq = 0; seq < 20; seq++) {
    await append(enrolled.request(), jobId, {
      leaseId,
      seq,
      nodeId: 'node',
      stream: 'stdout',
      data: 'x'.repeat(65_536),
    })
  }
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  await Cluster.remove(caller, enrolled.cluster.id)
  await sweep()
  expect((await query({ pk: keys.job(caller.organisationId, jobId).pk })).items).toEqual([])
})

test('a relay that was replaced can neither claim, nor write output, nor end its job', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const [running, waiting] = [await dispatchedJob(caller, enrolled), await dispatchedJob(caller, enrolled)]
  const { leaseId } = await claim(enrolled.request(), running, 'key')
  const { enrollmentToken } = await issue(caller, enrolled.cluster.id)
  await enroll(enrollRequest(enrollmentToken))
  const chunk = { leaseId, seq: 0, nodeId: 'node', stream: 'stdout' as const, data: 'x' }
  const calls = [
    claim(enrolled.request(), running, 'key'),
    claim(enrolled.request(), waiting, 'other'),
    append(enrolled.request(), running, chunk),
    complete(enrolled.request(), running, completionReport(enrolled, leaseId)),
  ]
  expect(await Promise.all(calls.map(errorCodeOf))).toEqual(Array.from(calls, () => 'unauthenticated'))
})

test('the first exit code that is not zero is the exit code of the job', async () => {
  const { caller, enrolled } = await callerWithCluster(['a', 'b', 'c'])
  const jobId = await dispatchedJob(caller, enrolled)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  const nodes = enrolled.relay.nodes.map(({ id }, index) => ({ nodeId: id, exitCode: index * 3 }))
  await complete(enrolled.request(), jobId, { leaseId, outcome: 'exited', exitCode: 0, nodes })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', result: { exitCode: 3 } })
})
