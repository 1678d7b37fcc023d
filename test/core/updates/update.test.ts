import { eventSchemas } from '@platform/contract/event'
import { UpdateAccepted } from '@platform/contract/update'
import { type Caller, system } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { patch, remove } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { version } from '@platform/core/lib/version'
import { findOperation, LeaseLost, operationLeaseMs } from '@platform/core/operations/operation'
import { transitionOf } from '@platform/core/outbox/record'
import { check } from '@platform/core/updates/check'
import { finishUpdate } from '@platform/core/updates/finish'
import { updatePlan } from '@platform/core/updates/record'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  errorCodeOf,
  errorOf,
  expectError,
  newCaller,
  requestErrorCode,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { storeJob } from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'
import { listNotifications } from '../support/notifications.ts'
import { claimed, finishOperation, pendingOperation } from '../support/operations.ts'
import { commitEffects, drainOutbox, readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import {
  claimUpdateOperation,
  clearUpdates,
  loadUpdatesAt,
  newPlatformAdmin,
  readUpdateState,
  storeUpdateState,
} from '../support/updates.ts'

const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

const { push, stopDuring } = registry
const repository = `${registry.host}/${registry.repository}`
const apply = (targetVersion: string) => ({ action: 'apply' as const, targetVersion })
const rollback = { action: 'rollback' as const }
const applied = { version: '1.1.0', repository: 'registry.example.com/releases', digest: `sha256:${'1'.repeat(64)}` }
const previousRelease = { ...applied, version: '0.0.9' }
const route = 'PUT /api/v1/platform/updates/apply'

async function operationOf({ organisationId }: { organisationId: string }, jobId: string) {
  const operation = await findOperation({ organisationId, jobId })
  if (operation === undefined) throw new Error('The operation does not exist.')
  return operation
}

test('accepts an update: locks the platform, stores the operation and queues it', async () => {
  const caller = await newPlatformAdmin()
  const { organisationId, userId } = caller
  const relay = { sha256: 'a'.repeat(64), signature: 'c2ln' }
  const { digest } = await push('1.2.0', { document: { relay } })
  const acceptedUpdate = await update(caller, apply('1.2.0'))
  const { jobId } = acceptedUpdate
  expect(acceptedUpdate).toEqual({ jobId, ...apply('1.2.0'), status: 'InProgress' })
  expect(UpdateAccepted.parse(acceptedUpdate)).toEqual(acceptedUpdate)
  expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
  const release = { version: '1.2.0', repository, digest, relay }
  const plan = updatePlan(await operationOf(caller, jobId))
  expect(plan).toEqual({ action: 'apply', release, before: { version } })
  const image = `${repository}@${digest}`
  const payload = { ...apply('1.2.0'), previousVersion: version, image, verifiedBy: 'releases' }
  const job = await Job.read(caller, jobId)
  expect(job).toMatchObject({ type: 'PlatformUpdate', status: 'Queued', payload })
  const steps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit']
  expect(job.steps?.map(({ name }) => name)).toEqual(steps)
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])

  const [record] = await readPendingRecords(organisationId)
  const audit = { action: 'update.apply', resource: '1.2.0', detail: `from ${version} to 1.2.0, ${image}` }
  expect(record).toMatchObject({ actor: { id: userId }, audit })
  expect(record?.events.map(({ name }) => name)).toEqual(['update.started', 'job.queued'])
  const data = { jobId, action: 'apply', version: '1.2.0', previousVersion: version }
  expect(eventSchemas['update.started'].parse(record?.events[0]?.data)).toEqual(data)
})

test('stores the applied release as the rollback target', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState(applied, { version: '0.0.9' })
  await push('1.2.0')
  const { jobId } = await (await loadUpdatesAt('1.1.0')).update(caller, apply('1.2.0'))
  expect(updatePlan(await operationOf(caller, jobId)).before).toEqual(applied)
})

test('ignores the applied release after a deployment of the same version', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState({ ...applied, version }, { version: '0.0.9' })
  await push('1.2.0')
  await expectError(update(caller, rollback), 'no_previous_version')
  expect(await check(caller)).not.toHaveProperty('previousVersion')
  const { jobId } = await update(caller, apply('1.2.0'))
  expect(updatePlan(await operationOf(caller, jobId)).before).toEqual({ version })
})

test('requires a target version for an update', async () => {
  const { code, extra } = await errorOf(update(await newPlatformAdmin(), { action: 'apply' }))
  expect([code, extra.details]).toMatchObject(['validation_failed', [{ in: 'body', path: '/targetVersion' }]])
})

test.each([
  ['unsigned', '1.2.0', { signer: false }, /No signature/],
  ['older', '0.0.9', {}, /not newer/],
] as const)('rejects a release that is %s', async (_, target, options, reason) => {
  const caller = await newPlatformAdmin()
  await push(target, options)
  const { code, message } = await errorOf(update(caller, { ...apply(target), force: true }))
  expect([code, message]).toEqual(['version_not_available', expect.stringMatching(reason)])
  expect(await readUpdateState()).toEqual({ revision: 0 })
  expect(await readPendingRecords(caller.organisationId)).toEqual([])
})

test('rejects a release with other infrastructure and names the deployment command', async () => {
  await push('1.2.0', { document: { infrastructure: '0'.repeat(64) } })
  const caller = await newPlatformAdmin()
  const { code, message } = await errorOf(update(caller, apply('1.2.0')))
  expect([code, message]).toEqual(['infrastructure_update_required', expect.stringContaining('npm ci && npm start')])
  expect(await requestErrorCode('updates', route, [caller, 'PlatformAdmin'], apply('1.2.0'))).toBe(code)
})

test('distinguishes a missing release from an unreachable registry', async () => {
  const caller = await newPlatformAdmin()
  await expectError(update(caller, apply('1.2.0')), 'version_not_available')
  await expectError(update(caller, apply('no version')), 'version_not_available')
  const reason = 'release_source_unreachable'
  expect(await stopDuring(() => errorCodeOf(update(caller, apply('1.2.0'))))).toBe(reason)
  const request = (endpoint: string, body?: object) =>
    stopDuring(() => requestErrorCode('updates', endpoint, [caller, 'PlatformAdmin'], body))
  expect(await request(route, apply('1.2.0'))).toBe(reason)
  expect(await request('GET /api/v1/platform/updates/check')).toBe(reason)
})

test('checks the current rights of the caller', async () => {
  await push('1.2.0')
  const caller = await newPlatformAdmin()
  const revokedCaller = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(update(revokedCaller, apply('1.2.0')), 'forbidden')
  await transact([remove(keys.user(caller.organisationId, caller.userId))])
  await expectError(update(caller, apply('1.2.0')), 'unauthenticated')
})

test('rolls back to the previous release without the registry', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState({ version }, previousRelease)
  const { jobId, ...accepted } = await stopDuring(() => update(caller, rollback))
  expect(accepted).toEqual({ action: 'rollback', targetVersion: '0.0.9', status: 'InProgress' })
  const operation = await operationOf(caller, jobId)
  const payload = { action: 'rollback', targetVersion: '0.0.9', previousVersion: version, image: expect.any(String) }
  expect(operation).toMatchObject({ type: 'PlatformRollback', payload })
  expect(operation.steps.map(({ name }) => name)).toEqual(['preflight', 'stage', 'smoke', 'shift-100', 'commit'])
  expect(updatePlan(operation)).toEqual({ action: 'rollback', release: previousRelease, before: { version } })
  expect(await readUpdateState()).toMatchObject({ jobId, previous: previousRelease })
})

test('rolls back to a deployed version', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState({ version }, { version: '0.0.9' })
  const { jobId } = await update(caller, { ...rollback, targetVersion: '0.0.9' })
  const { payload } = await Job.read(caller, jobId)
  expect(payload).toEqual({ action: 'rollback', targetVersion: '0.0.9', previousVersion: version })
})

test('rejects a rollback without a previous version, after a deployment, and to another version', async () => {
  const caller = await newPlatformAdmin()
  await expectError(update(caller, rollback), 'no_previous_version')
  await storeUpdateState({ version })
  await expectError(update(caller, { ...rollback, targetVersion: '0.0.9' }), 'no_previous_version')
  await storeUpdateState({ version: '0.0.8' }, previousRelease)
  await expectError(update(caller, rollback), 'no_previous_version')
  await storeUpdateState({ version }, previousRelease)
  const { code, message } = await errorOf(update(caller, { ...rollback, targetVersion: '0.0.8' }))
  expect([code, message]).toEqual(['version_not_available', expect.stringContaining('0.0.9')])
})

await bootstrapPlatform()
describe('an accepted update', () => {
  let caller: Caller
  let release: { version: string; repository: string; digest: string }
  beforeEach(async () => {
    caller = await newPlatformAdmin()
    const { digest } = await push('1.2.0')
    release = { version: '1.2.0', repository, digest }
  })

  const forcedRequest = { force: true }
  const completedEnd = { status: 'Completed', outcome: 'Version 1.2.0 is active.' } as const
  const failedEnd = { status: 'Failed', outcome: 'One of ten calls failed.' } as const
  const deployedRelease = { version }
  const finishEvents = () => readPendingEvents(caller, 'update.completed', 'update.failed', 'update.rolled_back')

  async function claimedUpdate(request: Parameters<typeof update>[1] = apply('1.2.0')) {
    const { jobId } = await update(caller, { ...request, ...forcedRequest })
    return { jobId, operation: await claimUpdateOperation(caller, jobId) }
  }

  test('accepts one of several concurrent updates', async () => {
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => errorCodeOf(update(caller, apply('1.2.0')))))
    expect(outcomes.toSorted()).toEqual(['no error', ...Array<string>(3).fill('update_in_progress')])
    expect(await readUpdateState()).toEqual({ jobId: expect.any(String), revision: 1 })
    expect(await readPendingEvents(caller, 'job.queued')).toHaveLength(1)
  })

  test('rejects an update that another one overtakes', async () => {
    await storeUpdateState(deployedRelease, { version: '0.0.9' })
    runBefore(/TransactWrite/, () => update(caller, rollback))
    await expectError(update(caller, apply('1.2.0')), 'update_in_progress')
    expect(await readPendingEvents(caller, 'update.started')).toMatchObject([{ data: { action: 'rollback' } }])
  })

  test('holds the lock until the job is finished or removed', async () => {
    const { operation } = await claimedUpdate()
    for (const request of [
      apply('1.2.0'),
      { ...apply('1.2.0'), targetVersion: '1.3.0' },
      rollback,
      { ...rollback, ...forcedRequest },
    ]) {
      await expectError(update(caller, request), 'update_in_progress')
    }
    // The job ends, but its lock is not released.
    expect(await finishOperation(operation, failedEnd)).toBe(true)
    await expect(finishUpdate(operation, failedEnd)).rejects.toThrow(LeaseLost)
    await drainOutbox(caller.organisationId)
    const { jobId } = await update(caller, apply('1.2.0'))
    expect(await readUpdateState()).toEqual({ jobId, revision: 2 })
    await transact([remove(keys.job(caller.organisationId, jobId))])
    expect(await update(caller, apply('1.2.0'))).toMatchObject({ targetVersion: '1.2.0' })
  })

  async function newTenant() {
    const { organisationId } = await newPlatformAdmin()
    await transact([patch(keys.organisation(organisationId), { set: { isPlatform: false } })])
    return organisationId
  }
  async function projectTransitions(organisationId: string, ...transitions: ReturnType<typeof transitionOf>[]) {
    await commitEffects(system(organisationId), { transitions })
    await drainOutbox(organisationId)
  }

  // The totals count a new job late, and count a started job as queued until its start is projected.
  test.for(['counted as Running', 'counted as Queued', 'not counted yet'] as const)(
    'rejects an update without force while jobs run that are %s',
    async (state) => {
      const organisationId = await newTenant()
      await storeJob(organisationId, 'Running')
      const countChange = transitionOf(
        { clusterId: newId('clus') },
        undefined,
        state.endsWith('Running') ? 'Running' : 'Queued',
      )
      await commitEffects(system(organisationId), { transitions: [countChange] })
      if (state !== 'not counted yet') await drainOutbox(organisationId)
      await expectError(update(caller, apply('1.2.0')), 'active_jobs')
      expect(await readUpdateState()).toEqual({ revision: 0 })
      await storeUpdateState(deployedRelease, { version: '0.0.9' })
      await expectError(update(caller, rollback), 'active_jobs')
      expect(await update(caller, { ...apply('1.2.0'), ...forcedRequest })).toMatchObject({ status: 'InProgress' })
    },
  )

  test('rejects an update while a module is being installed', async () => {
    const operation = await claimed(await pendingOperation(caller, 'ModuleInstall'))
    await drainOutbox(caller.organisationId)
    await expectError(update(caller, apply('1.2.0')), 'active_jobs')
    await finishOperation(operation, { status: 'Completed', outcome: '' })
    await drainOutbox(caller.organisationId)
    expect(await update(caller, apply('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })

  test('ignores queued and finished jobs', async () => {
    const jobs = [
      [undefined, 'Queued'],
      [undefined, 'Completed'],
      ['Running', 'Failed'],
    ] as const
    await projectTransitions(await newTenant(), ...jobs.map(([from, to]) => transitionOf({}, from, to)))
    expect(await update(caller, apply('1.2.0'))).toMatchObject({ status: 'InProgress' })
  })

  test('reports a running update before the target, and the target before running jobs', async () => {
    await storeJob(caller.organisationId, 'Running')
    await projectTransitions(caller.organisationId, transitionOf({}, undefined, 'Running'))
    await expectError(update(caller, { ...apply('1.2.0'), targetVersion: '9.9.9' }), 'version_not_available')
    await expectError(update(caller, rollback), 'no_previous_version')
    const requester = [caller, 'PlatformAdmin'] as const
    expect(await requestErrorCode('updates', route, requester, apply('1.2.0'))).toBe('active_jobs')
    await update(caller, { ...apply('1.2.0'), ...forcedRequest })
    const otherRequest = { ...apply('1.2.0'), targetVersion: '9.9.9' }
    expect(await requestErrorCode('updates', route, requester, otherRequest)).toBe('update_in_progress')
  })

  test('activates the release of a completed update and keeps the previous one', async () => {
    await storeUpdateState(deployedRelease, previousRelease)
    const { jobId, operation } = await claimedUpdate()
    expect(await countStoreCalls(() => finishUpdate(operation, completedEnd))).toBe(1)
    expect(await readUpdateState()).toEqual({ current: release, previous: deployedRelease, revision: 9 })
    expect(await Job.read(caller, jobId)).toMatchObject({
      status: 'Completed',
      result: { output: completedEnd.outcome },
    })
    const data = { jobId, version: '1.2.0', previousVersion: version }
    const [event, ...others] = await finishEvents()
    expect([event, others]).toMatchObject([{ name: 'update.completed', subject: jobId, data }, []])
    expect(eventSchemas['update.completed'].parse(event?.data)).toEqual(data)
  })

  test('swaps the two releases at a rollback', async () => {
    await storeUpdateState(deployedRelease, previousRelease)
    const { jobId, operation } = await claimedUpdate(rollback)
    await finishUpdate(operation, completedEnd)
    expect(await readUpdateState()).toEqual({ current: previousRelease, previous: deployedRelease, revision: 9 })
    const data = { jobId, version: '0.0.9', previousVersion: version }
    expect(await finishEvents()).toMatchObject([{ name: 'update.rolled_back', data }])
    const rolledBack = await loadUpdatesAt('0.0.9')
    expect(await rolledBack.check(caller)).toMatchObject({ currentVersion: '0.0.9', previousVersion: version })
    expect(await rolledBack.update(caller, { ...rollback, ...forcedRequest })).toMatchObject({ targetVersion: version })
  })

  test.each([apply('1.2.0'), rollback])(
    'changes no release and releases the lock after a failure of %o',
    async (request) => {
      await storeUpdateState(deployedRelease, previousRelease)
      const { jobId, operation } = await claimedUpdate(request)
      await finishUpdate(operation, failedEnd)
      expect(await readUpdateState()).toEqual({ current: deployedRelease, previous: previousRelease, revision: 9 })
      expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Failed', statusReason: 'update_failed' })
      const { action } = request
      const target = action === 'apply' ? '1.2.0' : '0.0.9'
      const data = { jobId, action, version: target, previousVersion: version, message: failedEnd.outcome }
      const [event] = await finishEvents()
      expect(event).toMatchObject({ name: 'update.failed', data })
      expect(eventSchemas['update.failed'].parse(event?.data)).toEqual(data)
      expect(await update(caller, { ...rollback, ...forcedRequest })).toMatchObject({ status: 'InProgress' })
    },
  )

  test('truncates a long failure message', async () => {
    const { operation } = await claimedUpdate()
    await finishUpdate(operation, { status: 'Failed', outcome: '🙂'.repeat(5000) })
    const [event] = await finishEvents()
    expect(eventSchemas['update.failed'].safeParse(event?.data).success).toBe(true)
  })

  test('notifies platform administrators of results', async () => {
    const colleague = await newCaller(caller.organisationId, 'OrgAdmin')
    await finishUpdate((await claimedUpdate()).operation, failedEnd)
    await storeUpdateState(deployedRelease, previousRelease)
    await finishUpdate((await claimedUpdate(rollback)).operation, completedEnd)
    await storeUpdateState(deployedRelease, previousRelease)
    await finishUpdate((await claimedUpdate()).operation, completedEnd)
    await drainOutbox(caller.organisationId)
    const { items } = await listNotifications(caller)
    expect(items.map(({ type, severity, title }) => [type, severity, title]).toReversed()).toEqual([
      ['UpdateFailed', 'critical', 'The update to 1.2.0 failed'],
      ['UpdateCompleted', 'info', 'The platform was rolled back to 0.0.9'],
      ['UpdateCompleted', 'info', 'The platform was updated to 1.2.0'],
    ])
    expect((await listNotifications(colleague)).items).toEqual([])
  })

  test('rejects the result of a worker without the lease', async () => {
    const { jobId, operation } = await claimedUpdate()
    advanceClock(operationLeaseMs + 1)
    const next = await claimed(operation)
    await expect(finishUpdate(operation, completedEnd)).rejects.toThrow(LeaseLost)
    expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
    await finishUpdate(next, failedEnd)
    await expect(finishUpdate(next, completedEnd)).rejects.toThrow(LeaseLost)
    expect(await readUpdateState()).toEqual({ revision: 2 })
    expect(await finishEvents()).toHaveLength(1)
  })

  test.each([
    ['missing', () => transact([remove(keys.updateState())])],
    ['held by another job', () => transact([patch(keys.updateState(), { set: { jobId: 'job_other' } })])],
  ])('finishes an update whose lock is %s without changing the state', async (_, lose) => {
    const { jobId, operation } = await claimedUpdate()
    await lose()
    const stateBefore = await readUpdateState()
    await finishUpdate(operation, completedEnd)
    expect(await readUpdateState()).toEqual(stateBefore)
    expect((await Job.read(caller, jobId)).status).toBe('Completed')
    await expect(finishUpdate(operation, completedEnd)).rejects.toThrow(LeaseLost)
  })
})
