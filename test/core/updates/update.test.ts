import { eventSchemas } from '@platform/contract/event'
import { UpdateAccepted } from '@platform/contract/update'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { version } from '@platform/core/lib/version'
import { findOperation } from '@platform/core/operations/operation'
import { check } from '@platform/core/updates/check'
import { updatePlan } from '@platform/core/updates/record'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import * as fixtures from '../../support/fixtures.ts'
import { receiveMessages } from '../support/messages.ts'
import { pendingRecords } from '../support/outbox.ts'
import { clearUpdates, loadUpdatesAt, newPlatformAdmin, readUpdateState, storeUpdateState } from '../support/updates.ts'

const { errorCodeOf, errorOf, expectError, newCaller, requestErrorCode } = fixtures
const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
await fixtures.bootstrapPlatform()
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
const previous = { ...applied, version: '0.0.9' }
const route = 'PUT /api/v1/platform/updates/apply'

async function operationOf({ organisationId }: { organisationId: string }, jobId: string) {
  const operation = await findOperation({ organisationId, jobId })
  if (operation === undefined) throw new Error('The operation does not exist.')
  return operation
}

test('accepts an update: locks the platform, stores the operation and queues it', async () => {
  const caller = await newPlatformAdmin()
  const { organisationId, userId } = caller
  const { digest } = await push('1.2.0')
  const accepted = await update(caller, apply('1.2.0'))
  const { jobId } = accepted
  expect(accepted).toEqual({ jobId, ...apply('1.2.0'), status: 'InProgress' })
  expect(UpdateAccepted.parse(accepted)).toEqual(accepted)
  expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
  const release = { version: '1.2.0', repository, digest }
  const plan = updatePlan(await operationOf(caller, jobId))
  expect(plan).toEqual({ action: 'apply', release, before: { version } })
  const image = `${repository}@${digest}`
  const payload = { ...apply('1.2.0'), previousVersion: version, image, verifiedBy: 'releases' }
  const job = await Job.read(caller, jobId)
  expect(job).toMatchObject({ type: 'PlatformUpdate', status: 'Queued', payload })
  const steps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit']
  expect(job.steps?.map(({ name }) => name)).toEqual(steps)
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])

  const [record] = await pendingRecords(organisationId)
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
  ['signed by a module key', '1.2.0', { signer: 'module' }, /no trusted key/],
  ['a prerelease', '1.2.0-rc.1', {}, /prerelease/],
  ['active', version, {}, /not newer/],
  ['older', '0.0.9', {}, /not newer/],
  ['too new', '1.2.0', { document: { minFrom: '1.1.0' } }, /requires version 1\.1\.0 or later/],
  ['another version', '1.2.0', { document: { version: '1.3.0' } }, /under another tag/],
] as const)('rejects a release that is %s', async (_, target, options, reason) => {
  const caller = await newPlatformAdmin()
  await push(target, options)
  const { code, message } = await errorOf(update(caller, { ...apply(target), force: true }))
  expect([code, message]).toEqual(['version_not_available', expect.stringMatching(reason)])
  expect(await readUpdateState()).toEqual({ revision: 0 })
  expect(await pendingRecords(caller.organisationId)).toEqual([])
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
  const unreachable = 'release_source_unreachable'
  expect(await stopDuring(() => errorCodeOf(update(caller, apply('1.2.0'))))).toBe(unreachable)
  const request = (endpoint: string, body?: object) =>
    stopDuring(() => requestErrorCode('updates', endpoint, [caller, 'PlatformAdmin'], body))
  expect(await request(route, apply('1.2.0'))).toBe(unreachable)
  expect(await request('GET /api/v1/platform/updates/check')).toBe(unreachable)
})

test('checks the current rights of the caller', async () => {
  await push('1.2.0')
  const caller = await newPlatformAdmin()
  const revoked = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(update(revoked, apply('1.2.0')), 'forbidden')
  await transact([remove(keys.user(caller.organisationId, caller.userId))])
  await expectError(update(caller, apply('1.2.0')), 'unauthenticated')
})

test('rolls back to the previous release without the registry', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState({ version }, previous)
  const { jobId, ...accepted } = await stopDuring(() => update(caller, rollback))
  expect(accepted).toEqual({ action: 'rollback', targetVersion: '0.0.9', status: 'InProgress' })
  const operation = await operationOf(caller, jobId)
  const payload = { action: 'rollback', targetVersion: '0.0.9', previousVersion: version, image: expect.any(String) }
  expect(operation).toMatchObject({ type: 'PlatformRollback', payload })
  expect(operation.steps.map(({ name }) => name)).toEqual(['preflight', 'stage', 'smoke', 'shift-100', 'commit'])
  expect(updatePlan(operation)).toEqual({ action: 'rollback', release: previous, before: { version } })
  expect(await readUpdateState()).toMatchObject({ jobId, previous })
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
  await storeUpdateState({ version: '0.0.8' }, previous)
  await expectError(update(caller, rollback), 'no_previous_version')
  await storeUpdateState({ version }, previous)
  const { code, message } = await errorOf(update(caller, { ...rollback, targetVersion: '0.0.8' }))
  expect([code, message]).toEqual(['version_not_available', expect.stringContaining('0.0.9')])
})
