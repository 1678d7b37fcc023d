import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { eventSchemas } from '@platform/contract/event'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/remove-all'
import { patch, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { LeaseLost, operationLeaseMs } from '@platform/core/operations/operation'
import { update } from '@platform/core/updates/request'
import { finishUpdate } from '@platform/core/updates/finish'
import { version } from '@platform/core/lib/version'
import { callsOf } from '../../support/store-calls.ts'
import { callerOf, refusalOf, started } from '../../support/world.ts'
import { settle } from '../support/books.ts'
import { begun, ended } from '../support/operations.ts'
import { later, read } from '../support/told.ts'
import { admin, codeOf, eventsOf, forgetUpdates, putState, stateNow, worker } from '../support/updates.ts'

const world = await vi.hoisted(async () => (await import('../support/release-hoist.ts')).startReleaseWorld())
afterAll(world.close)
await started()
beforeEach(async () => {
  await world.clear()
  await removeAll(keys.organisation(''))
  await forgetUpdates()
})

const completed = { status: 'Completed', outcome: 'Version 1.2.0 serves.' } as const
const failed = { status: 'Failed', outcome: 'One of ten calls failed.' } as const
/** What this code is. */
const deployed = { version }
const older = { version: '0.0.9', repository: 'registry.example.com/releases', digest: `sha256:${'1'.repeat(64)}` }
const ends = ['update.completed', 'update.failed', 'update.rolled_back']

/** An update to 1.2.0, or the way back to 0.0.9, that a worker is at. */
async function begin(caller: Caller, action: 'apply' | 'rollback' = 'apply') {
  const { digest } = await world.push('1.2.0')
  const release = { version: '1.2.0', repository: `${world.host}/${world.repository}`, digest }
  const { jobId } = await update(caller, { action, force: true, ...(action === 'apply' && { targetVersion: '1.2.0' }) })
  return { jobId, release, operation: await worker(caller, jobId) }
}

test('an update that is completed serves, and what served before is the previous version', async () => {
  const caller = await admin()
  await putState(deployed, older)
  const { jobId, release, operation } = await begin(caller)
  await finishUpdate(operation, completed)
  expect(await stateNow()).toEqual({ current: release, previous: deployed, revision: 9 })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { output: completed.outcome } })
  const data = { jobId, version: '1.2.0', previousVersion: version }
  const [event, ...more] = await eventsOf(caller, ...ends)
  expect([event, more]).toMatchObject([{ name: 'update.completed', subject: jobId, data }, []])
  expect(eventSchemas['update.completed'].parse(event?.data)).toEqual(data)
})

test('an update of a platform that was deployed goes back to what was deployed', async () => {
  const { release, operation } = await begin(await admin())
  await finishUpdate(operation, completed)
  expect(await stateNow()).toEqual({ current: release, previous: { version }, revision: 2 })
})

test('a rollback that is completed swaps the two, so that another one leads forward again', async () => {
  const caller = await admin()
  await putState(deployed, older)
  const { jobId, operation } = await begin(caller, 'rollback')
  await finishUpdate(operation, completed)
  expect(await stateNow()).toEqual({ current: older, previous: deployed, revision: 9 })
  const data = { jobId, version: '0.0.9', previousVersion: version }
  expect(await eventsOf(caller, ...ends)).toMatchObject([{ name: 'update.rolled_back', data }])
  const gone = await codeOf('0.0.9')
  expect(await gone.check(caller)).toMatchObject({ currentVersion: '0.0.9', previousVersion: version })
  expect(await gone.update(caller, { action: 'rollback', force: true })).toMatchObject({ targetVersion: version })
})

test.each(['apply', 'rollback'] as const)(
  'an %s that fails leaves all as it was, and the platform free',
  async (action) => {
    const caller = await admin()
    await putState(deployed, older)
    const { jobId, operation } = await begin(caller, action)
    await finishUpdate(operation, failed)
    expect(await stateNow()).toEqual({ current: deployed, previous: older, revision: 9 })
    expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'update_failed' })
    const wanted = action === 'apply' ? '1.2.0' : '0.0.9'
    const data = { jobId, action, version: wanted, previousVersion: version, message: failed.outcome }
    const [event] = await eventsOf(caller, ...ends)
    expect(event).toMatchObject({ name: 'update.failed', data })
    expect(eventSchemas['update.failed'].parse(event?.data)).toEqual(data)
    expect(await update(caller, { action: 'rollback', force: true })).toMatchObject({ status: 'InProgress' })
  },
)

test('a failure with a long story is told as far as it can be', async () => {
  const caller = await admin()
  const { operation } = await begin(caller)
  await finishUpdate(operation, { status: 'Failed', outcome: '🙂'.repeat(5000) })
  const [event] = await eventsOf(caller, ...ends)
  expect(eventSchemas['update.failed'].safeParse(event?.data).success).toBe(true)
})

test('those who administer the platform are told how it went, and nobody else', async () => {
  const caller = await admin()
  const other = await callerOf(caller.organisationId, 'OrgAdmin')
  await finishUpdate((await begin(caller)).operation, failed)
  await putState(deployed, older)
  await finishUpdate((await begin(caller, 'rollback')).operation, completed)
  await putState(deployed, older)
  await finishUpdate((await begin(caller)).operation, completed)
  await settle(caller.organisationId)
  const { items } = await read(caller)
  expect(items.map(({ type, severity, title }) => [type, severity, title]).toReversed()).toEqual([
    ['UpdateFailed', 'critical', 'The update to 1.2.0 failed'],
    ['UpdateCompleted', 'info', 'The platform went back to 0.0.9'],
    ['UpdateCompleted', 'info', 'The platform was updated to 1.2.0'],
  ])
  expect((await read(other)).items).toEqual([])
})

test('a worker that has lost the update ends nothing', async () => {
  const caller = await admin()
  const { jobId, operation } = await begin(caller)
  later(operationLeaseMs + 1)
  const other = await begun(operation)
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
  expect(await stateNow()).toEqual({ jobId, revision: 1 })
  await finishUpdate(other, failed)
  await expect(finishUpdate(other, completed)).rejects.toThrow(LeaseLost)
  expect(await stateNow()).toEqual({ revision: 2 })
  expect(await eventsOf(caller, ...ends)).toHaveLength(1)
})

test.each([
  ['is gone', () => transact([remove(keys.updateState())])],
  ['is held by another', () => transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])],
])('an update whose lock %s ends all the same, and leaves the state alone', async (_, lose) => {
  const caller = await admin()
  const { jobId, operation } = await begin(caller)
  await lose()
  const before = await stateNow()
  await finishUpdate(operation, completed)
  expect(await stateNow()).toEqual(before)
  expect((await Job.read(caller, jobId)).status).toBe('Completed')
  await expect(finishUpdate(operation, completed)).rejects.toThrow(LeaseLost)
})

test('the end of an update takes one call', async () => {
  const { operation } = await begin(await admin())
  expect(await callsOf(() => finishUpdate(operation, completed))).toBe(1)
})

test('an operation that ended without its update holds nothing up', async () => {
  const caller = await admin()
  const { operation } = await begin(caller)
  await ended(operation, failed)
  await expect(finishUpdate(operation, failed)).rejects.toThrow(LeaseLost)
  expect(await refusalOf(update(caller, { action: 'apply', targetVersion: '1.2.0', force: true }))).toBe(
    'nothing was refused',
  )
})
