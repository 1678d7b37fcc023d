import { eventSchemas } from '@platform/contract/event'
import { Notification } from '@platform/contract/notification'
import { UpdateAccepted } from '@platform/contract/update'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { remove } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { version } from '@platform/core/lib/version'
import { findOperation } from '@platform/core/operations/operation'
import { check } from '@platform/core/updates/check'
import { updatePlan } from '@platform/core/updates/record'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  bootstrapPlatform,
  errorCodeOf,
  errorOf,
  newCaller,
  requestErrorCode,
  expectError,
} from '../../support/fixtures.ts'
import { receiveMessages } from '../support/messages.ts'
import {
  commitAndDrain,
  eventEffect,
  listNotifications,
  notificationTypes,
  organisationWithUsers,
} from '../support/notifications.ts'
import { pendingRecords } from '../support/outbox.ts'
import { clearUpdates, loadUpdatesAt, newPlatformAdmin, readUpdateState, storeUpdateState } from '../support/updates.ts'

const registry = await vi.hoisted(async () => (await import('../support/release-registry.ts')).startReleaseFixtures())

afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

const { push, away } = registry
const image = (digest: string) => `${registry.host}/${registry.repository}@${digest}`
const to = (targetVersion: string) => ({ action: 'apply' as const, targetVersion })
const back = { action: 'rollback' as const }
const applied = { version: '1.1.0', repository: 'registry.example.com/releases', digest: `sha256:${'1'.repeat(64)}` }

describe('an update', () => {
  test('is accepted at once: the platform is taken, and a job waits that knows what to do', async () => {
    const caller = await newPlatformAdmin()
    const { digest } = await push('1.2.0')
    const accepted = await update(caller, to('1.2.0'))
    const { jobId } = accepted
    expect(accepted).toEqual({ jobId, action: 'apply', targetVersion: '1.2.0', status: 'InProgress' })
    expect(UpdateAccepted.parse(accepted)).toEqual(accepted)
    expect(await readUpdateState()).toEqual({ jobId, revision: 1 })
    const { organisationId } = caller
    const operation = await findOperation({ organisationId, jobId })
    expect(operation && updatePlan(operation)).toEqual({
      action: 'apply',
      release: { version: '1.2.0', repository: `${registry.host}/${registry.repository}`, digest },
      before: { version },
    })
    const payload = {
      action: 'apply',
      targetVersion: '1.2.0',
      previousVersion: version,
      image: image(digest),
      verifiedBy: 'releases',
    }
    const job = await Job.read(caller, jobId)
    expect(job).toMatchObject({ type: 'PlatformUpdate', status: 'Queued', payload })
    const steps = ['preflight', 'stage', 'smoke', 'shift-10', 'shift-50', 'shift-100', 'commit']
    expect(job.steps?.map(({ name }) => name)).toEqual(steps)
    expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])
  })

  test('is on record: who, from where to where, and by which digest', async () => {
    const caller = await newPlatformAdmin()
    const { digest } = await push('1.2.0')
    const { jobId } = await update(caller, to('1.2.0'))
    const [record] = await pendingRecords(caller.organisationId)
    const detail = `from ${version} to 1.2.0, ${image(digest)}`
    expect(record).toMatchObject({
      actor: { id: caller.userId },
      audit: { action: 'update.apply', resource: '1.2.0', detail },
    })
    expect(record?.events.map(({ name }) => name)).toEqual(['update.started', 'job.queued'])
    const data = { jobId, action: 'apply', version: '1.2.0', previousVersion: version }
    expect(eventSchemas['update.started'].parse(record?.events[0]?.data)).toEqual(data)
  })

  test('that was applied before is what the next one goes back to', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState(applied, { version: '0.0.9' })
    await push('1.2.0')
    const { jobId } = await (await loadUpdatesAt('1.1.0')).update(caller, to('1.2.0'))
    const operation = await findOperation({ organisationId: caller.organisationId, jobId })
    expect(operation && updatePlan(operation)).toMatchObject({ before: applied })
  })

  test('begins with what was deployed, be it the very version that was applied before', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState({ ...applied, version }, { version: '0.0.9' })
    await push('1.2.0')
    await expectError(update(caller, back), 'no_previous_version')
    expect(await check(caller)).not.toHaveProperty('previousVersion')
    const { jobId } = await update(caller, to('1.2.0'))
    const operation = await findOperation({ organisationId: caller.organisationId, jobId })
    expect(operation && updatePlan(operation).before).toEqual({ version })
  })

  test('needs a version to lead to', async () => {
    const { code, extra } = await errorOf(update(await newPlatformAdmin(), { action: 'apply' }))
    expect([code, extra.details]).toMatchObject(['validation_failed', [{ in: 'body', path: '/targetVersion' }]])
  })

  test.each([
    ['nobody has signed', '1.2.0', { signer: false }, /No signature/],
    ['a key of modules has signed', '1.2.0', { signer: 'module' }, /no trusted key/],
    ['is a prerelease', '1.2.0-rc.1', {}, /prerelease/],
    ['serves already', version, {}, /not newer/],
    ['is older', '0.0.9', {}, /not newer/],
    ['is too new', '1.2.0', { document: { minFrom: '1.1.0' } }, /requires version 1\.1\.0 or later/],
    ['is another one', '1.2.0', { document: { version: '1.3.0' } }, /under another tag/],
  ] as const)('to a release that %s is refused with the reason', async (_, wanted, wish, reason) => {
    const caller = await newPlatformAdmin()
    await push(wanted, wish)
    const { code, message } = await errorOf(update(caller, { ...to(wanted), force: true }))
    expect([code, message]).toEqual(['version_not_available', expect.stringMatching(reason)])
    expect(await readUpdateState()).toEqual({ revision: 0 })
    expect(await pendingRecords(caller.organisationId)).toEqual([])
  })

  test('to a release that needs other infrastructure is refused with what to run instead', async () => {
    await push('1.2.0', { document: { infrastructure: '0'.repeat(64) } })
    const caller = await newPlatformAdmin()
    const { code, message } = await errorOf(update(caller, to('1.2.0')))
    expect([code, message]).toEqual(['infrastructure_update_required', expect.stringContaining('npm ci && npm start')])
    const asked = requestErrorCode(
      'updates',
      'PUT /api/v1/platform/updates/apply',
      [caller, 'PlatformAdmin'],
      to('1.2.0'),
    )
    expect(await asked).toBe('infrastructure_update_required')
  })

  test('to a release that is not there is refused, and one that cannot be read is not called absent', async () => {
    const caller = await newPlatformAdmin()
    await expectError(update(caller, to('1.2.0')), 'version_not_available')
    await expectError(update(caller, to('no version')), 'version_not_available')
    expect(await away(() => errorCodeOf(update(caller, to('1.2.0'))))).toBe('release_source_unreachable')
    for (const [request, body] of [
      ['PUT /api/v1/platform/updates/apply', to('1.2.0')],
      ['GET /api/v1/platform/updates/check', undefined],
    ] as const) {
      const asked = await away(() => requestErrorCode('updates', request, [caller, 'PlatformAdmin'], body))
      expect(asked).toBe('release_source_unreachable')
    }
  })

  test('is done for whoever may still do it: not for one that has lost the right, or was removed', async () => {
    await push('1.2.0')
    const caller = await newPlatformAdmin()
    const weak = await newCaller(undefined, 'OrgAdmin')
    await expectError(update({ ...weak, permissions: caller.permissions }, to('1.2.0')), 'forbidden')
    await transact([remove(keys.user(caller.organisationId, caller.userId))])
    await expectError(update(caller, to('1.2.0')), 'unauthenticated')
  })
})

describe('a rollback', () => {
  const previous = { version: '0.0.9', repository: 'registry.example.com/releases', digest: `sha256:${'9'.repeat(64)}` }

  test('leads to the previous version, whether the registry is there or not', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState({ version }, previous)
    const { jobId, ...accepted } = await away(() => update(caller, back))
    expect(accepted).toEqual({ action: 'rollback', targetVersion: '0.0.9', status: 'InProgress' })
    const operation = await findOperation({ organisationId: caller.organisationId, jobId })
    const facts = { action: 'rollback', targetVersion: '0.0.9', previousVersion: version, image: expect.any(String) }
    expect(operation).toMatchObject({ type: 'PlatformRollback', payload: facts })
    expect(operation?.steps.map(({ name }) => name)).toEqual(['preflight', 'stage', 'smoke', 'shift-100', 'commit'])
    expect(operation && updatePlan(operation)).toEqual({ action: 'rollback', release: previous, before: { version } })
    expect(await readUpdateState()).toMatchObject({ jobId, previous })
  })

  test('may lead to a version that was deployed, not applied', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState({ version }, { version: '0.0.9' })
    const { jobId } = await update(caller, { ...back, targetVersion: '0.0.9' })
    const { payload } = await Job.read(caller, jobId)
    expect(payload).toEqual({ action: 'rollback', targetVersion: '0.0.9', previousVersion: version })
  })

  test('needs a previous version, and one that was not overtaken by a deployment', async () => {
    const caller = await newPlatformAdmin()
    await expectError(update(caller, back), 'no_previous_version')
    await storeUpdateState({ version })
    await expectError(update(caller, { ...back, targetVersion: '0.0.9' }), 'no_previous_version')
    await storeUpdateState({ version: '0.0.8' }, previous)
    await expectError(update(caller, back), 'no_previous_version')
  })

  test('leads nowhere else', async () => {
    await storeUpdateState({ version }, previous)
    const { code, message } = await errorOf(update(await newPlatformAdmin(), { ...back, targetVersion: '0.0.8' }))
    expect([code, message]).toEqual(['version_not_available', expect.stringContaining('0.0.9')])
  })
})

test('updates are told to those who administer the platform, however long their versions are', async () => {
  const { organisationId, admin } = await organisationWithUsers()
  const operator = await newCaller(organisationId, 'PlatformAdmin')
  const [version, previousVersion] = [`1.0.0-${'x'.repeat(250)}`, `0.9.0-${'x'.repeat(250)}`]
  const started = { jobId: newId('job'), version, previousVersion }
  const releaseNotesUrl = `https://example.com/${'x'.repeat(1900)}`
  await commitAndDrain(
    organisationId,
    eventEffect('update.available', { version, currentVersion: previousVersion, releaseNotesUrl }),
    eventEffect('update.completed', started),
    eventEffect('update.rolled_back', started),
    eventEffect('update.failed', { ...started, action: 'apply', message: 'x'.repeat(1000) }),
  )
  const { items } = await listNotifications(operator)
  expect(items.map(({ type }) => type).toSorted()).toEqual([
    'UpdateAvailable',
    'UpdateCompleted',
    'UpdateCompleted',
    'UpdateFailed',
  ])
  for (const item of items) expect(Notification.parse(item)).toEqual(item)
  expect(await notificationTypes(admin)).toEqual([])
})
