import { eventSchemas } from '@platform/contract/event'
import { type Caller, system } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { patch, remove } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { version } from '@platform/core/lib/version'
import { LeaseLost, operationLeaseMs } from '@platform/core/operations/operation'
import { transitionOf } from '@platform/core/outbox/record'
import { finishUpdate } from '@platform/core/updates/finish'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { bootstrapPlatform, errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { beforeCommand, countStoreCalls } from '../../support/store-calls.ts'
import { storeJob } from '../support/jobs.ts'
import { advanceClock } from '../../support/clock.ts'
import { listNotifications } from '../support/notifications.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'
import { commitEffects, drainOutbox } from '../support/outbox.ts'
import * as updates from '../support/updates.ts'

const { claimUpdateOperation, newPlatformAdmin, pendingEvents, readUpdateState, storeUpdateState } = updates
const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
await bootstrapPlatform()
let caller: Caller
let release: { version: string; repository: string; digest: string }
beforeEach(async () => {
  await registry.clear()
  await removeAll(keys.organisation(''))
  await updates.clearUpdates()
  caller = await newPlatformAdmin()
  const { digest } = await registry.push('1.2.0')
  release = { version: '1.2.0', repository: `${registry.host}/${registry.repository}`, digest }
})

const apply = { action: 'apply' as const, targetVersion: '1.2.0' }
const rollback = { action: 'rollback' as const }
const forced = { force: true }
const completed = { status: 'Completed', outcome: 'Version 1.2.0 is active.' } as const
const failed = { status: 'Failed', outcome: 'One of ten calls failed.' } as const
const deployed = { version }
const older = { version: '0.0.9', repository: 'registry.example.com/releases', digest: `sha256:${'1'.repeat(64)}` }
const finishEvents = () => pendingEvents(caller, 'update.completed', 'update.failed', 'update.rolled_back')

/** An accepted update or rollback whose operation a worker has claimed. */
async function claimedUpdate(request: Parameters<typeof update>[1] = apply) {
  const { jobId } = await update(caller, { ...request, ...forced })
  return { jobId, operation: await claimUpdateOperation(caller, jobId) }
}

test('accepts one of several concurrent updates', async () => {
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(update(caller, apply))))
  expect(outcomes.toSorted()).toEqual(['no error', ...Array<string>(3).fill('update_in_progress')])
  expect(await readUpdateState()).toEqual({ jobId: expect.any(String), revision: 1 })
  expect(await pendingEvents(caller, 'job.queued')).toHaveLength(1)
})

test('rejects an update that another one overtakes', async () => {
  await storeUpdateState(deployed, { version: '0.0.9' })
  const isOvertaken = beforeCommand(/TransactWrite/, () => update(caller, rollback))
  await expectError(update(caller, apply), 'update_in_progress')
  expect(isOvertaken()).toBe(true)
  expect(await pendingEvents(caller, 'update.started')).toMatchObject([{ data: { action: 'rollback' } }])
})

test('holds the lock until the job is finished or removed', async () => {
  const { operation } = await claimedUpdate()
  for (const request of [apply, { ...apply, targetVersion: '1.3.0' }, rollback, { ...rollback, ...forced }]) {
    await expectError(update(caller, request), 'update_in_progress')
  }
  // Finished without releasing the lock.
  expect(await finishOperation(operation, failed)).toBe(true)
  await expect(finishUpdate(operation, failed)).rejects.toThrow(LeaseLost)
  await drainOutbox(caller.organisationId)
  const { jobId } = await update(caller, apply)
  expect(await readUpdateState()).toEqual({ jobId, revision: 2 })
  await transact([remove(keys.job(caller.organisationId, jobId))])
  expect(await update(caller, apply)).toMatchObject({ targetVersion: '1.2.0' })
})

/** An organisation that is not the platform's. */
async function newTenant() {
  const { organisationId } = await newPlatformAdmin()
  await transact([patch(keys.organisation(organisationId), { set: { isPlatform: false } })])
  return organisationId
}
async function projectTransitions(organisationId: string, ...transitions: ReturnType<typeof transitionOf>[]) {
  await commitEffects(system(organisationId), { transitions })
  await drainOutbox(organisationId)
}

test('rejects an update without force while jobs of any organisation run', async () => {
  const organisationId = await newTenant()
  await storeJob(organisationId, 'Running')
  await projectTransitions(organisationId, transitionOf({ clusterId: newId('clus') }, undefined, 'Running'))
  await expectError(update(caller, apply), 'active_jobs')
  expect(await readUpdateState()).toEqual({ revision: 0 })
  await storeUpdateState(deployed, { version: '0.0.9' })
  await expectError(update(caller, rollback), 'active_jobs')
  expect(await update(caller, { ...apply, ...forced })).toMatchObject({ status: 'InProgress' })
})

test('rejects an update while a module is being installed', async () => {
  const operation = await claimed(await pendingOperation(caller, 'ModuleInstall'))
  await drainOutbox(caller.organisationId)
  await expectError(update(caller, apply), 'active_jobs')
  await finishOperation(operation, { status: 'Completed', outcome: '' })
  await drainOutbox(caller.organisationId)
  expect(await update(caller, apply)).toMatchObject({ status: 'InProgress' })
})

test('ignores queued and finished jobs', async () => {
  const jobs = [
    [undefined, 'Queued'],
    [undefined, 'Completed'],
    ['Running', 'Failed'],
  ] as const
  await projectTransitions(await newTenant(), ...jobs.map(([from, to]) => transitionOf({}, from, to)))
  expect(await update(caller, apply)).toMatchObject({ status: 'InProgress' })
})

test('reports a running update before the target, and the target before running jobs', async () => {
  await storeJob(caller.organisationId, 'Running')
  await projectTransitions(caller.organisationId, transitionOf({}, undefined, 'Running'))
  await expectError(update(caller, { ...apply, targetVersion: '9.9.9' }), 'version_not_available')
  await expectError(update(caller, rollback), 'no_previous_version')
  await expectError(update(caller, apply), 'active_jobs')
  await update(caller, { ...apply, ...forced })
  await expectError(update(caller, { ...apply, targetVersion: '9.9.9' }), 'update_in_progress')
})

test('activates the release of a completed update and keeps the previous one', async () => {
  await storeUpdateState(deployed, older)
  const { jobId, operation } = await claimedUpdate()
  expect(await countStoreCalls(() => finishUpdate(operation, completed))).toBe(1)
  expect(await readUpdateState()).toEqual({ current: release, previous: deployed, revision: 9 })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { output: completed.outcome } })
  const data = { jobId, version: '1.2.0', previousVersion: version }
  const [event, ...others] = await finishEvents()
  expect([event, others]).toMatchObject([{ name: 'update.completed', subject: jobId, data }, []])
  expect(eventSchemas['update.completed'].parse(event?.data)).toEqual(data)
})

test('keeps the deployed version as the rollback target of the first update', async () => {
  const { operation } = await claimedUpdate()
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual({ current: release, previous: { version }, revision: 2 })
})

test('swaps the two releases at a rollback', async () => {
  await storeUpdateState(deployed, older)
  const { jobId, operation } = await claimedUpdate(rollback)
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual({ current: older, previous: deployed, revision: 9 })
  const data = { jobId, version: '0.0.9', previousVersion: version }
  expect(await finishEvents()).toMatchObject([{ name: 'update.rolled_back', data }])
  const rolledBack = await updates.loadUpdatesAt('0.0.9')
  expect(await rolledBack.check(caller)).toMatchObject({ currentVersion: '0.0.9', previousVersion: version })
  expect(await rolledBack.update(caller, { ...rollback, ...forced })).toMatchObject({ targetVersion: version })
})

test.each([apply, rollback])('changes no release and releases the lock after a failure of %o', async (request) => {
  await storeUpdateState(deployed, older)
  const { jobId, operation } = await claimedUpdate(request)
  await finishUpdate(operation, failed)
  expect(await readUpdateState()).toEqual({ current: deployed, previous: older, revision: 9 })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'update_failed' })
  const { action } = request
  const target = action === 'apply' ? '1.2.0' : '0.0.9'
  const data = { jobId, action, version: target, previousVersion: version, message: failed.outcome }
  const [event] = await finishEvents()
  expect(event).toMatchObject({ name: 'update.failed', data })
  expect(eventSchemas['update.failed'].parse(event?.data)).toEqual(data)
  expect(await update(caller, { ...rollback, ...forced })).toMatchObject({ status: 'InProgress' })
})

test('truncates a long failure message', async () => {
  const { operation } = await claimedUpdate()
  await finishUpdate(operation, { status: 'Failed', outcome: '🙂'.repeat(5000) })
  const [event] = await finishEvents()
  expect(eventSchemas['update.failed'].safeParse(event?.data).success).toBe(true)
})

test('notifies platform administrators of results', async () => {
  const other = await newCaller(caller.organisationId, 'OrgAdmin')
  await finishUpdate((await claimedUpdate()).operation, failed)
  await storeUpdateState(deployed, older)
  await finishUpdate((await claimedUpdate(rollback)).operation, completed)
  await storeUpdateState(deployed, older)
  await finishUpdate((await claimedUpdate()).operation, completed)
  await drainOutbox(caller.organisationId)
  const { items } = await listNotifications(caller)
  expect(items.map(({ type, severity, title }) => [type, severity, title]).toReversed()).toEqual([
    ['UpdateFailed', 'critical', 'The update to 1.2.0 failed'],
    ['UpdateCompleted', 'info', 'The platform was rolled back to 0.0.9'],
    ['UpdateCompleted', 'info', 'The platform was updated to 1.2.0'],
  ])
  expect((await listNotifications(other)).items).toEqual([])
})

test('rejects the result of a worker without the lease', async () => {
  const { jobId, operation } = await claimedUpdate()
  advanceClock(operationLeaseMs + 1)
  const next = await claimed(operation)
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
  expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
  await finishUpdate(next, failed)
  await expect(finishUpdate(next, completed)).rejects.toThrow(LeaseLost)
  expect(await readUpdateState()).toEqual({ revision: 2 })
  expect(await finishEvents()).toHaveLength(1)
})

test.each([
  ['missing', () => transact([remove(keys.updateState())])],
  ['held by another job', () => transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])],
])('finishes an update whose lock is %s without changing the state', async (_, lose) => {
  const { jobId, operation } = await claimedUpdate()
  await lose()
  const before = await readUpdateState()
  await finishUpdate(operation, completed)
  expect(await readUpdateState()).toEqual(before)
  expect((await Job.read(caller, jobId)).status).toBe('Completed')
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
})
