import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { system } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/remove-all'
import { patch, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { transitionOf } from '@platform/core/outbox/record'
import { update } from '@platform/core/updates/request'
import { version } from '@platform/core/lib/version'
import { callsOf, justBefore } from '../../support/store-calls.ts'
import { refusalOf, started } from '../../support/world.ts'
import { jobOf } from '../support/bare-job.ts'
import { settle, tell } from '../support/books.ts'
import { begun, ended, waitingOperation } from '../support/operations.ts'
import { admin, eventsOf, forgetUpdates, putState, stateNow, worker } from '../support/updates.ts'

const world = await vi.hoisted(async () => (await import('../support/release-hoist.ts')).startReleaseWorld())
afterAll(world.close)
await started()
beforeEach(async () => {
  await world.clear()
  await removeAll(keys.organisation(''))
  await forgetUpdates()
})

const { push } = world
const to = (targetVersion: string) => ({ action: 'apply' as const, targetVersion })
const back = { action: 'rollback' as const }

describe('one update at a time', () => {
  test('of many that are asked for at once one is accepted, and the others hear of it', async () => {
    const caller = await admin()
    await push('1.2.0')
    const asked = await Promise.allSettled([1, 2, 3, 4].map(() => update(caller, to('1.2.0'))))
    const accepted = asked.flatMap((each) => (each.status === 'fulfilled' ? each.value.jobId : []))
    const refused = asked.flatMap((each) => (each.status === 'rejected' ? each.reason.code : []))
    expect([accepted.length, refused]).toEqual([1, Array(3).fill('update_in_progress')])
    expect(await stateNow()).toEqual({ jobId: accepted[0], revision: 1 })
    expect(await eventsOf(caller, 'job.queued')).toHaveLength(1)
  })

  test('one that another overtakes between looking and writing is refused', async () => {
    const caller = await admin()
    await push('1.2.0')
    await putState({ version }, { version: '0.0.9' })
    const overtaken = justBefore(/TransactWrite/, () => update(caller, back))
    expect(await refusalOf(update(caller, to('1.2.0')))).toBe('update_in_progress')
    expect(overtaken()).toBe(true)
    expect(await eventsOf(caller, 'update.started')).toMatchObject([{ data: { action: 'rollback' } }])
  })

  test('a repeated request is no second one: its key changes nothing', async () => {
    const caller = await admin()
    await push('1.2.0')
    await update(caller, to('1.2.0'))
    for (const request of [to('1.2.0'), to('1.3.0'), back, { ...back, force: true }]) {
      expect(await refusalOf(update(caller, request))).toBe('update_in_progress')
    }
  })

  test('holds while the job waits and works, and not when the job has ended or is no more', async () => {
    const caller = await admin()
    await push('1.2.0')
    const { jobId } = await update(caller, to('1.2.0'))
    const operation = await worker(caller, jobId)
    expect(await refusalOf(update(caller, to('1.2.0')))).toBe('update_in_progress')
    // Ended by whoever knows nothing of the lock.
    expect(await ended(operation, { status: 'Failed', outcome: '' })).toBe(true)
    await settle(caller.organisationId)
    const second = await update(caller, to('1.2.0'))
    expect(await stateNow()).toEqual({ jobId: second.jobId, revision: 2 })
    await transact([remove(keys.job(caller.organisationId, second.jobId))])
    expect(await update(caller, to('1.2.0'))).toMatchObject({ targetVersion: '1.2.0' })
  })
})

/** Somebody of an organisation that is not the platform's. */
async function inTenant() {
  const caller = await admin()
  await transact([patch(keys.organisation(caller.organisationId), { set: { isPlatform: false } })])
  return caller
}

describe('while jobs run', () => {
  test('an update waits for those of other organisations as well, unless it is forced', async () => {
    const [caller, tenant] = [await admin(), await inTenant()]
    await push('1.2.0')
    const clusterId = newId('clus')
    await jobOf(tenant.organisationId, 'Running')
    await tell(system(tenant.organisationId), { moves: [transitionOf({ clusterId }, undefined, 'Running')] })
    await settle(tenant.organisationId)
    expect(await refusalOf(update(caller, to('1.2.0')))).toBe('active_jobs')
    expect(await stateNow()).toEqual({ revision: 0 })
    await putState({ version }, { version: '0.0.9' })
    expect(await refusalOf(update(caller, back))).toBe('active_jobs')
    expect(await update(caller, { ...to('1.2.0'), force: true })).toMatchObject({ status: 'InProgress' })
  })

  test('an update waits for modules that are being installed', async () => {
    const caller = await admin()
    await push('1.2.0')
    const operation = await begun(await waitingOperation(caller, 'ModuleInstall'))
    await settle(caller.organisationId)
    expect(await refusalOf(update(caller, to('1.2.0')))).toBe('active_jobs')
    await ended(operation, { status: 'Completed', outcome: '' })
    await settle(caller.organisationId)
    expect(await update(caller, to('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })

  test('jobs that wait or are over are no reason to wait', async () => {
    const [caller, tenant] = [await admin(), await inTenant()]
    await push('1.2.0')
    const moves = [
      transitionOf({}, undefined, 'Queued'),
      transitionOf({}, undefined, 'Completed'),
      transitionOf({}, 'Running', 'Failed'),
    ]
    await tell(system(tenant.organisationId), { moves })
    await settle(tenant.organisationId)
    expect(await update(caller, to('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })
})

test('what is wrong is told in an order: an update under way, the target, jobs that run', async () => {
  const caller = await admin()
  await jobOf(caller.organisationId, 'Running')
  await tell(system(caller.organisationId), { moves: [transitionOf({}, undefined, 'Running')] })
  await settle(caller.organisationId)
  expect(await refusalOf(update(caller, to('1.2.0')))).toBe('version_not_available')
  expect(await refusalOf(update(caller, back))).toBe('no_previous_version')
  await push('1.2.0')
  expect(await refusalOf(update(caller, to('1.2.0')))).toBe('active_jobs')
  await update(caller, { ...to('1.2.0'), force: true })
  expect(await refusalOf(update(caller, to('9.9.9')))).toBe('update_in_progress')
})

test('an update that is forced takes two calls, one that looks for jobs eleven more for a thousand organisations', async () => {
  const caller = await admin()
  await push('1.2.0')
  expect(await callsOf(() => update(caller, { ...to('1.2.0'), force: true }))).toBe(2)
  await forgetUpdates()
  expect(await callsOf(() => update(caller, to('1.2.0')))).toBe(4)
})
