import { Notification } from '@platform/contract/notification'
import { newId } from '@platform/core/id'
import { expect, test } from 'vitest'
import { callerOf } from '../../support/world.ts'
import { event, happens, people, read, types } from '../support/told.ts'

test('updates are told to those who administer the platform, however long their versions are', async () => {
  const { organisationId, admin } = await people()
  const operator = await callerOf(organisationId, 'PlatformAdmin')
  const [version, previousVersion] = [`1.0.0-${'x'.repeat(250)}`, `0.9.0-${'x'.repeat(250)}`]
  const started = { jobId: newId('job'), version, previousVersion }
  const releaseNotesUrl = `https://example.com/${'x'.repeat(1900)}`
  await happens(
    organisationId,
    event('update.available', { version, currentVersion: previousVersion, releaseNotesUrl }),
    event('update.completed', started),
    event('update.rolled_back', started),
    event('update.failed', { ...started, action: 'apply', message: 'x'.repeat(1000) }),
  )
  const { items } = await read(operator)
  expect(items.map(({ type }) => type).toSorted()).toEqual([
    'UpdateAvailable',
    'UpdateCompleted',
    'UpdateCompleted',
    'UpdateFailed',
  ])
  for (const item of items) expect(Notification.parse(item)).toEqual(item)
  expect(await types(admin)).toEqual([])
})
