import { beforeAll, expect, test } from 'vitest'
import { now, shiftClock } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { cancelConfirmMs } from '@platform/core/jobs/cancel'
import * as Job from '@platform/core/jobs/job'
import { claim, nextCheckWhileRunning, renewLease } from '@platform/core/jobs/claim'
import { enforceDeadline } from '@platform/core/jobs/deadlines'
import { parseJob } from '@platform/core/jobs/record'
import { outboxRetryMs } from '@platform/core/aws/queues'
import { callerOf, enrolledCluster, started } from '../../support/world.ts'
import { script, waitingJob } from '../support/jobs.ts'
import { sentWhile } from '../support/sent.ts'

/** What a look at a job does whose time has not come: it is filed for when it has. Those that are out of time: end.test.ts. */

beforeAll(started)

async function world() {
  const caller = await callerOf()
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
  const { caller, cluster, rowOf, dueOf, look } = await world()
  const patient = await Job.submit(caller, script(cluster.cluster.id))
  const hasty = await Job.submit(caller, script(cluster.cluster.id, {}, { deliverWithinSeconds: 60 }))
  shiftClock(50_000)
  for (const { id } of [patient, hasty]) {
    const message = { organisationId: caller.organisationId, jobId: id }
    expect(await sentWhile(config.PLAT_QUEUE_JOBS, () => look(id))).toEqual([message])
  }
  expect(Math.abs((await dueOf(patient.id)) - now() - outboxRetryMs)).toBeLessThan(10_000)
  expect(await dueOf(hasty.id)).toBe((await rowOf(hasty.id)).expiresAtMs)
  shiftClock(-50_000)
})

test('a job that waits in an inbox is looked at when it expires, and told to nobody', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await world()
  const id = await waitingJob(caller, cluster)
  await fileForNow(id)
  expect(await sentWhile(config.PLAT_QUEUE_JOBS, () => look(id))).toEqual([])
  expect(await dueOf(id)).toBe((await rowOf(id)).expiresAtMs)
})

test('a running job is looked at when it is due; a lease that was renewed meanwhile is not overlooked', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await world()
  const id = await waitingJob(caller, cluster)
  await claim(cluster.request(), id, undefined)
  await fileForNow(id)
  await look(id)
  expect(await dueOf(id)).toBe(nextCheckWhileRunning(await rowOf(id), cancelConfirmMs))

  const asRead = await rowOf(id)
  shiftClock(200_000)
  await renewLease(asRead)
  await fileForNow(id)
  const filedMs = await dueOf(id)
  await enforceDeadline(asRead)
  expect(await dueOf(id)).toBe(filedMs)
  shiftClock(-200_000)
})

test('a job that is over is looked at no more', async () => {
  const { caller, cluster, rowOf, dueOf, fileForNow, look } = await world()
  const id = await waitingJob(caller, cluster)
  await Job.cancel(caller, id)
  await fileForNow(id)
  await look(id)
  expect([(await rowOf(id)).status, await dueOf(id)]).toEqual(['Cancelled', 0])
})
