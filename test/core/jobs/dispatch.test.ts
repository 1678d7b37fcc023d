import { beforeAll, expect, test } from 'vitest'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { justBefore } from '../../support/store-calls.ts'
import { callerOf, enrolledCluster, started } from '../../support/world.ts'
import { counters, inboxOf, script, waitingJob } from '../support/jobs.ts'
import { takeMessages } from '../support/messages.ts'
import { used } from '../support/usage.ts'

/** From the message about a job into the inbox of its cluster. */

beforeAll(started)

async function submitted() {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const { id: jobId } = await Job.submit(caller, script(world.cluster.id))
  const { organisationId } = caller
  return { caller, world, jobId, organisationId, reference: { organisationId, jobId } }
}

const callsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await used(work)).usage.calls.filter((call) => call !== 'SendMessage')

test('a job that waits goes into the inbox, and is due when it can no longer be delivered', async () => {
  const { caller, world, jobId, organisationId, reference } = await submitted()
  await takeMessages(config.PLAT_QUEUE_EVENTS)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem', 'TransactWriteItems'])
  expect(await inboxOf(world.cluster.id)).toEqual([jobId])
  expect(await counters(caller, world)).toEqual([1, 1])
  const row = await get(keys.job(organisationId, jobId))
  expect(keys.dueTimeOf(String(row?.['duesk']))).toBe(row?.['expiresAtMs'])
  expect(row?.['dispatchedAtMs']).toEqual(expect.any(Number))
  // One message about a new job does for its record, too.
  expect(await takeMessages(config.PLAT_QUEUE_EVENTS)).toContainEqual({ organisationId })
})

test('a message for a job that is not there, is over, runs, or was dispatched writes nothing', async () => {
  const { caller, world, jobId, organisationId, reference } = await submitted()
  expect(await callsOf(() => dispatch({ organisationId, jobId: newId('job') }))).toEqual(['GetItem'])
  await dispatch(reference)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  await claim(world.request(), jobId, undefined)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  const over = await waitingJob(caller, world)
  await Job.cancel(caller, over)
  await takeMessages(config.PLAT_QUEUE_EVENTS)
  expect(await callsOf(() => dispatch({ organisationId, jobId: over }))).toEqual(['GetItem'])
  expect(await takeMessages(config.PLAT_QUEUE_EVENTS)).toEqual([])
  expect(await inboxOf(world.cluster.id)).toEqual([])
})

test('a job that its batch holds back is not dispatched, and neither is one that runs without having been', async () => {
  const { world, jobId, organisationId, reference } = await submitted()
  await update(keys.job(organisationId, jobId), { set: { isHeld: true } })
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  await update(keys.job(organisationId, jobId), { set: { status: 'Running' }, remove: ['isHeld'] })
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  expect(await inboxOf(world.cluster.id)).toEqual([])
})

test('a job that is cancelled while it is dispatched does not come into the inbox', async () => {
  const { caller, world, jobId, reference } = await submitted()
  const isCancelled = justBefore(/^TransactWrite/, () => Job.cancel(caller, jobId))
  await dispatch(reference)
  expect(isCancelled()).toBe(true)
  expect(await inboxOf(world.cluster.id)).toEqual([])
  expect(await counters(caller, world)).toEqual([0, 0])
})

test('a job that was dispatched and claimed meanwhile does not come into the inbox again', async () => {
  const { caller, world, jobId, reference } = await submitted()
  const isClaimed = justBefore(/^TransactWrite/, async () => {
    await dispatch(reference)
    await claim(world.request(), jobId, undefined)
  })
  await dispatch(reference)
  expect(isClaimed()).toBe(true)
  expect(await inboxOf(world.cluster.id)).toEqual([])
  expect(await counters(caller, world)).toEqual([1, 0])
})
