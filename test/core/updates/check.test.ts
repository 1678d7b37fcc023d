import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventSchemas } from '@platform/contract/event'
import { UpdateCheck } from '@platform/contract/update'
import { iso, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { get, patch } from '@platform/core/db/table'
import { finishUpdate } from '@platform/core/updates/finish'
import { update } from '@platform/core/updates/request'
import { check, checkRegularly } from '@platform/core/updates/check'
import { version } from '@platform/core/lib/version'
import { countStoreCalls, beforeCommand } from '../../support/store-calls.ts'
import { newCaller, errorCodeOf, bootstrapPlatform } from '../../support/fixtures.ts'
import { drainOutbox } from '../support/outbox.ts'
import { advanceClock, minute, listNotifications } from '../support/notifications.ts'
import {
  newPlatformAdmin,
  loadUpdatesAt,
  pendingEvents,
  clearUpdates,
  storeUpdateState,
  claimUpdateOperation,
} from '../support/updates.ts'

const world = await vi.hoisted(async () => (await import('../support/release-registry.ts')).startReleaseFixtures())
afterAll(world.close)
await bootstrapPlatform()
beforeEach(async () => {
  await world.clear()
  await clearUpdates()
  await removeAll(keys.organisation(''))
})

const { push, away } = world
const releaseNotesUrl = 'https://example.com/notes/1.2.0'

describe('a check', () => {
  test('finds the newest release that can be applied, with its notes, and what is wrong with newer ones', async () => {
    await push('1.1.0')
    await push('1.2.0', { document: { releaseNotesUrl } })
    await push('1.3.0', { signer: 'stranger' })
    const found = await check(await newPlatformAdmin())
    expect(found).toEqual({
      currentVersion: version,
      latestVersion: '1.2.0',
      updateAvailable: true,
      releaseNotesUrl,
      checkedAt: expect.any(String),
      refused: [{ version: '1.3.0', reason: expect.stringContaining('no trusted key') }],
    })
    expect(UpdateCheck.parse(found)).toEqual(found)
    expect(Math.abs(Date.parse(found.checkedAt) - now())).toBeLessThan(10_000)
  })

  test('finds nothing where there is nothing newer: no notes then', async () => {
    await push('0.0.9', { document: { releaseNotesUrl } })
    await push(version)
    expect(await check(await newPlatformAdmin())).toEqual({
      currentVersion: version,
      latestVersion: version,
      updateAvailable: false,
      checkedAt: expect.any(String),
      refused: [],
    })
  })

  test('tells what a rollback leads to, and which update is under way', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState({ version }, { version: '0.0.9' })
    expect(await check(caller)).toMatchObject({ previousVersion: '0.0.9' })
    const { jobId } = await update(caller, { action: 'rollback', force: true })
    expect(await check(caller)).toMatchObject({ previousVersion: '0.0.9', jobId })
    await finishUpdate(await claimUpdateOperation(caller, jobId), { status: 'Failed', outcome: 'No.' })
    const after = await check(caller)
    expect(after).toMatchObject({ previousVersion: '0.0.9' })
    expect(after).not.toHaveProperty('jobId')
  })

  test('tells of no way back where the platform was deployed since it was updated', async () => {
    await storeUpdateState({ version: '0.0.8' }, { version: '0.0.7' })
    expect(await check(await newPlatformAdmin())).not.toHaveProperty('previousVersion')
  })

  test('costs two calls, and three during an update', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    expect(await countStoreCalls(() => check(caller))).toBe(2)
    await update(caller, { action: 'apply', targetVersion: '1.2.0', force: true })
    expect(await countStoreCalls(() => check(caller))).toBe(3)
  })
})

describe('where the releases cannot be read', () => {
  test('the last result is told, with the time that it is of', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0', { document: { releaseNotesUrl } })
    const found = await check(caller)
    advanceClock(60 * minute)
    expect(await away(() => check(caller))).toEqual(found)
    const { checkedAt, ...rest } = await check(caller)
    const { checkedAt: before, ...first } = found
    expect(rest).toEqual(first)
    expect(Date.parse(checkedAt)).toBeGreaterThanOrEqual(Date.parse(before) + 60 * minute)
  })

  test('and never could be, there is nothing to tell', async () => {
    const caller = await newPlatformAdmin()
    expect(await away(() => errorCodeOf(check(caller)))).toBe('release_source_unreachable')
    expect(await get(keys.updateCheck())).toBeUndefined()
  })

  test('and only those of another repository could be, there is nothing to tell either', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await check(caller)
    await transact([patch(keys.updateCheck(), { set: { source: 'registry.example.com/other' } })])
    expect(await away(() => errorCodeOf(check(caller)))).toBe('release_source_unreachable')
  })

  test('a version that was applied meanwhile is no update any more', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await push('1.3.0', { signer: false })
    await check(caller)
    const updated = await loadUpdatesAt('1.2.0')
    expect(await away(() => updated.check(caller))).toMatchObject({
      currentVersion: '1.2.0',
      latestVersion: '1.2.0',
      updateAvailable: false,
      refused: [{ version: '1.3.0' }],
    })
    const beyond = await loadUpdatesAt('1.4.0')
    expect(await away(() => beyond.check(caller))).toMatchObject({ latestVersion: '1.4.0', refused: [] })
  })
})

describe('a release that is seen for the first time', () => {
  test('is told of, once, and to those who administer the platform', async () => {
    const caller = await newPlatformAdmin()
    const other = await newCaller(caller.organisationId, 'OrgAdmin')
    await push('1.2.0', { document: { releaseNotesUrl } })
    for (let round = 0; round < 3; round++) await check(caller)
    await checkRegularly()
    const [event, ...more] = await pendingEvents(caller, 'update.available')
    expect(more).toEqual([])
    const data = { version: '1.2.0', currentVersion: version, releaseNotesUrl }
    expect(event).toMatchObject({ subject: '1.2.0', data })
    expect(eventSchemas['update.available'].parse(event?.data)).toEqual(data)
    await drainOutbox(caller.organisationId)
    expect((await listNotifications(caller)).items).toMatchObject([
      { type: 'UpdateAvailable', severity: 'info', resource: '1.2.0', body: expect.stringContaining(releaseNotesUrl) },
    ])
    expect((await listNotifications(other)).items).toEqual([])
  })

  test('is told of once, however many look at the same time', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await Promise.all([1, 2, 3, 4].map(() => check(caller)))
    const raced = beforeCommand(/TransactWrite/, () => check(caller))
    await check(caller)
    expect(raced()).toBe(true)
    expect(await pendingEvents(caller, 'update.available')).toHaveLength(1)
  })

  test('is not told of again after it was withdrawn, nor after it was rolled back', async () => {
    const caller = await newPlatformAdmin()
    const seen = async () => (await pendingEvents(caller, 'update.available')).map(({ data }) => data['version'])
    await push('1.2.0')
    await check(caller)
    await push('1.3.0')
    await check(caller)
    await world.client.remove(world.repository, '1.3.0')
    await check(caller)
    await push('1.3.0')
    await check(caller)
    expect(await seen()).toEqual(['1.2.0', '1.3.0'])
    // Older than what was told of before, and better than nothing.
    await world.client.remove(world.repository, '1.3.0')
    await push('1.2.1')
    await check(caller)
    expect(await seen()).toEqual(['1.2.0', '1.3.0', '1.2.1'])
  })

  test('is not told of where it cannot be applied', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0', { signer: false })
    await check(caller)
    expect(await pendingEvents(caller, 'update.available')).toEqual([])
    await push('1.2.0')
    await check(caller)
    expect(await pendingEvents(caller, 'update.available')).toHaveLength(1)
  })
})

describe('the look by the clock', () => {
  test('tells of a new release by itself, and keeps what it has found', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    expect(await countStoreCalls(checkRegularly)).toBe(3)
    expect(await pendingEvents(caller, 'update.available')).toHaveLength(1)
    const [{ checkedAtMs }] = [(await get(keys.updateCheck())) ?? {}]
    expect(await away(() => check(caller))).toMatchObject({
      latestVersion: '1.2.0',
      checkedAt: iso(Number(checkedAtMs)),
    })
  })

  test('looks nowhere before setup is complete: nobody could be told', async () => {
    await push('1.2.0')
    expect(await countStoreCalls(checkRegularly)).toBe(1)
    expect(await get(keys.updateCheck())).toBeUndefined()
  })

  test('takes a registry that is away for what it is', async () => {
    await newPlatformAdmin()
    expect(await away(checkRegularly)).toBeUndefined()
    expect(await get(keys.updateCheck())).toBeUndefined()
  })
})
