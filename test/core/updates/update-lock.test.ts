import { eventSchemas } from '@platform/contract/event'
import { type Caller, system } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { patch, remove } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { version } from '@platform/core/lib/version'
import { LeaseLost, operationLeaseMs } from '@platform/core/operations/operation'
import { transitionOf } from '@platform/core/outbox/record'
import { finishUpdate } from '@platform/core/updates/finish'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { bootstrapPlatform, newCaller, expectError } from '../../support/fixtures.ts'
import { beforeCommand, countStoreCalls } from '../../support/store-calls.ts'
import { storeJob } from '../support/jobs.ts'
import { advanceClock, listNotifications } from '../support/notifications.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'
import { commitEffects, drainOutbox } from '../support/outbox.ts'
import {
  claimUpdateOperation,
  clearUpdates,
  loadUpdatesAt,
  newPlatformAdmin,
  pendingEvents,
  readUpdateState,
  storeUpdateState,
} from '../support/updates.ts'

const registry = await vi.hoisted(async () => (await import('../support/release-registry.ts')).startReleaseFixtures())

afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

const { push } = registry
const to = (targetVersion: string) => ({ action: 'apply' as const, targetVersion })
const back = { action: 'rollback' as const }

describe('one update at a time', () => {
  test('of many that are asked for at once one is accepted, and the others hear of it', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    const asked = await Promise.allSettled([1, 2, 3, 4].map(() => update(caller, to('1.2.0'))))
    const accepted = asked.flatMap((each) => (each.status === 'fulfilled' ? each.value.jobId : []))
    const refused = asked.flatMap((each) => (each.status === 'rejected' ? each.reason.code : []))
    expect([accepted.length, refused]).toEqual([1, Array(3).fill('update_in_progress')])
    expect(await readUpdateState()).toEqual({ jobId: accepted[0], revision: 1 })
    expect(await pendingEvents(caller, 'job.queued')).toHaveLength(1)
  })

  test('one that another overtakes between looking and writing is refused', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await storeUpdateState({ version }, { version: '0.0.9' })
    const overtaken = beforeCommand(/TransactWrite/, () => update(caller, back))
    await expectError(update(caller, to('1.2.0')), 'update_in_progress')
    expect(overtaken()).toBe(true)
    expect(await pendingEvents(caller, 'update.started')).toMatchObject([{ data: { action: 'rollback' } }])
  })

  test('a repeated request is no second one: its key changes nothing', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await update(caller, to('1.2.0'))
    for (const request of [to('1.2.0'), to('1.3.0'), back, { ...back, force: true }]) {
      await expectError(update(caller, request), 'update_in_progress')
    }
  })

  test('holds while the job waits and works, and not when the job has ended or is no more', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    const { jobId } = await update(caller, to('1.2.0'))
    const operation = await claimUpdateOperation(caller, jobId)
    await expectError(update(caller, to('1.2.0')), 'update_in_progress')
    // Ended by whoever knows nothing of the lock.
    expect(await finishOperation(operation, { status: 'Failed', outcome: '' })).toBe(true)
    await drainOutbox(caller.organisationId)
    const second = await update(caller, to('1.2.0'))
    expect(await readUpdateState()).toEqual({ jobId: second.jobId, revision: 2 })
    await transact([remove(keys.job(caller.organisationId, second.jobId))])
    expect(await update(caller, to('1.2.0'))).toMatchObject({ targetVersion: '1.2.0' })
  })
})

/** Somebody of an organisation that is not the platform's. */
async function inTenant() {
  const caller = await newPlatformAdmin()
  await transact([patch(keys.organisation(caller.organisationId), { set: { isPlatform: false } })])
  return caller
}

describe('while jobs run', () => {
  test('an update waits for those of other organisations as well, unless it is forced', async () => {
    const [caller, tenant] = [await newPlatformAdmin(), await inTenant()]
    await push('1.2.0')
    const clusterId = newId('clus')
    await storeJob(tenant.organisationId, 'Running')
    await commitEffects(system(tenant.organisationId), {
      transitions: [transitionOf({ clusterId }, undefined, 'Running')],
    })
    await drainOutbox(tenant.organisationId)
    await expectError(update(caller, to('1.2.0')), 'active_jobs')
    expect(await readUpdateState()).toEqual({ revision: 0 })
    await storeUpdateState({ version }, { version: '0.0.9' })
    await expectError(update(caller, back), 'active_jobs')
    expect(await update(caller, { ...to('1.2.0'), force: true })).toMatchObject({ status: 'InProgress' })
  })

  test('an update waits for modules that are being installed', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    const operation = await claimed(await pendingOperation(caller, 'ModuleInstall'))
    await drainOutbox(caller.organisationId)
    await expectError(update(caller, to('1.2.0')), 'active_jobs')
    await finishOperation(operation, { status: 'Completed', outcome: '' })
    await drainOutbox(caller.organisationId)
    expect(await update(caller, to('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })

  test('jobs that wait or are over are no reason to wait', async () => {
    const [caller, tenant] = [await newPlatformAdmin(), await inTenant()]
    await push('1.2.0')
    const transitions = [
      transitionOf({}, undefined, 'Queued'),
      transitionOf({}, undefined, 'Completed'),
      transitionOf({}, 'Running', 'Failed'),
    ]
    await commitEffects(system(tenant.organisationId), { transitions })
    await drainOutbox(tenant.organisationId)
    expect(await update(caller, to('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })
})

test('what is wrong is told in an order: an update under way, the target, jobs that run', async () => {
  const caller = await newPlatformAdmin()
  await storeJob(caller.organisationId, 'Running')
  await commitEffects(system(caller.organisationId), { transitions: [transitionOf({}, undefined, 'Running')] })
  await drainOutbox(caller.organisationId)
  await expectError(update(caller, to('1.2.0')), 'version_not_available')
  await expectError(update(caller, back), 'no_previous_version')
  await push('1.2.0')
  await expectError(update(caller, to('1.2.0')), 'active_jobs')
  await update(caller, { ...to('1.2.0'), force: true })
  await expectError(update(caller, to('9.9.9')), 'update_in_progress')
})

test('an update that is forced takes two calls, one that looks for jobs eleven more for a thousand organisations', async () => {
  const caller = await newPlatformAdmin()
  await push('1.2.0')
  expect(await countStoreCalls(() => update(caller, { ...to('1.2.0'), force: true }))).toBe(2)
  await clearUpdates()
  expect(await countStoreCalls(() => update(caller, to('1.2.0')))).toBe(4)
})

afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

const completed = { status: 'Completed', outcome: 'Version 1.2.0 serves.' } as const
const failed = { status: 'Failed', outcome: 'One of ten calls failed.' } as const
/** What this code is. */
const deployed = { version }
const older = { version: '0.0.9', repository: 'registry.example.com/releases', digest: `sha256:${'1'.repeat(64)}` }
const ends = ['update.completed', 'update.failed', 'update.rolled_back']

/** An update to 1.2.0, or the way back to 0.0.9, that a worker is at. */
async function begin(caller: Caller, action: 'apply' | 'rollback' = 'apply') {
  const { digest } = await registry.push('1.2.0')
  const release = { version: '1.2.0', repository: `${registry.host}/${registry.repository}`, digest }
  const { jobId } = await update(caller, { action, force: true, ...(action === 'apply' && { targetVersion: '1.2.0' }) })
  return { jobId, release, operation: await claimUpdateOperation(caller, jobId) }
}

test('an update that is completed serves, and what served before is the previous version', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState(deployed, older)
  const { jobId, release, operation } = await begin(caller)
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual({ current: release, previous: deployed, revision: 9 })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { output: completed.outcome } })
  const data = { jobId, version: '1.2.0', previousVersion: version }
  const [event, ...more] = await pendingEvents(caller, ...ends)
  expect([event, more]).toMatchObject([{ name: 'update.completed', subject: jobId, data }, []])
  expect(eventSchemas['update.completed'].parse(event?.data)).toEqual(data)
})

test('an update of a platform that was deployed goes back to what was deployed', async () => {
  const { release, operation } = await begin(await newPlatformAdmin())
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual({ current: release, previous: { version }, revision: 2 })
})

test('a rollback that is completed swaps the two, so that another one leads forward again', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState(deployed, older)
  const { jobId, operation } = await begin(caller, 'rollback')
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual({ current: older, previous: deployed, revision: 9 })
  const data = { jobId, version: '0.0.9', previousVersion: version }
  expect(await pendingEvents(caller, ...ends)).toMatchObject([{ name: 'update.rolled_back', data }])
  const gone = await loadUpdatesAt('0.0.9')
  expect(await gone.check(caller)).toMatchObject({ currentVersion: '0.0.9', previousVersion: version })
  expect(await gone.update(caller, { action: 'rollback', force: true })).toMatchObject({ targetVersion: version })
})

test.each(['apply', 'rollback'] as const)(
  'an %s that fails leaves all as it was, and the platform free',
  async (action) => {
    const caller = await newPlatformAdmin()
    await storeUpdateState(deployed, older)
    const { jobId, operation } = await begin(caller, action)
    await finishUpdate(operation, failed)
    expect(await readUpdateState()).toEqual({ current: deployed, previous: older, revision: 9 })
    expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'update_failed' })
    const wanted = action === 'apply' ? '1.2.0' : '0.0.9'
    const data = { jobId, action, version: wanted, previousVersion: version, message: failed.outcome }
    const [event] = await pendingEvents(caller, ...ends)
    expect(event).toMatchObject({ name: 'update.failed', data })
    expect(eventSchemas['update.failed'].parse(event?.data)).toEqual(data)
    expect(await update(caller, { action: 'rollback', force: true })).toMatchObject({ status: 'InProgress' })
  },
)

test('a failure with a long story is told as far as it can be', async () => {
  const caller = await newPlatformAdmin()
  const { operation } = await begin(caller)
  await finishUpdate(operation, { status: 'Failed', outcome: '🙂'.repeat(5000) })
  const [event] = await pendingEvents(caller, ...ends)
  expect(eventSchemas['update.failed'].safeParse(event?.data).success).toBe(true)
})

test('those who administer the platform are told how it went, and nobody else', async () => {
  const caller = await newPlatformAdmin()
  const other = await newCaller(caller.organisationId, 'OrgAdmin')
  await finishUpdate((await begin(caller)).operation, failed)
  await storeUpdateState(deployed, older)
  await finishUpdate((await begin(caller, 'rollback')).operation, completed)
  await storeUpdateState(deployed, older)
  await finishUpdate((await begin(caller)).operation, completed)
  await drainOutbox(caller.organisationId)
  const { items } = await listNotifications(caller)
  expect(items.map(({ type, severity, title }) => [type, severity, title]).toReversed()).toEqual([
    ['UpdateFailed', 'critical', 'The update to 1.2.0 failed'],
    ['UpdateCompleted', 'info', 'The platform was rolled back to 0.0.9'],
    ['UpdateCompleted', 'info', 'The platform was updated to 1.2.0'],
  ])
  expect((await listNotifications(other)).items).toEqual([])
})

test('a worker that has lost the update ends nothing', async () => {
  const caller = await newPlatformAdmin()
  const { jobId, operation } = await begin(caller)
  advanceClock(operationLeaseMs + 1)
  const other = await claimed(operation)
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
  expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
  await finishUpdate(other, failed)
  await expect(finishUpdate(other, completed)).rejects.toThrow(LeaseLost)
  expect(await readUpdateState()).toEqual({ revision: 2 })
  expect(await pendingEvents(caller, ...ends)).toHaveLength(1)
})

test.each([
  ['is gone', () => transact([remove(keys.updateState())])],
  ['is held by another', () => transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])],
])('an update whose lock %s ends all the same, and leaves the state alone', async (_, lose) => {
  const caller = await newPlatformAdmin()
  const { jobId, operation } = await begin(caller)
  await lose()
  const before = await readUpdateState()
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual(before)
  expect((await Job.read(caller, jobId)).status).toBe('Completed')
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
})

test('the end of an update takes one call', async () => {
  const { operation } = await begin(await newPlatformAdmin())
  expect(await countStoreCalls(() => finishUpdate(operation, completed))).toBe(1)
})

test('an operation that ended without its update holds nothing up', async () => {
  const caller = await newPlatformAdmin()
  const { operation } = await begin(caller)
  await finishOperation(operation, failed)
  await expect(finishUpdate(operation, failed)).rejects.toThrow(LeaseLost)
  await expectError(update(caller, { action: 'apply', targetVersion: '1.2.0', force: true }), 'no error')
})
