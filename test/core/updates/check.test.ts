import { eventSchemas } from '@platform/contract/event'
import { UpdateCheck } from '@platform/contract/update'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { iso, now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, patch } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { version } from '@platform/core/lib/version'
import { findOperation, operationLeaseMs } from '@platform/core/operations/operation'
import { check, checkRegularly } from '@platform/core/updates/check'
import { finishUpdate } from '@platform/core/updates/finish'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, errorCodeOf, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls, crashAtCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { receiveMessages } from '../support/messages.ts'
import { listNotifications, minuteMs } from '../support/notifications.ts'
import { claimed } from '../support/operations.ts'
import { drainOutbox, readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import * as updates from '../support/updates.ts'

const { clearUpdates, loadUpdatesAt, newPlatformAdmin, readUpdateState, storeUpdateState } = updates
const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await clearUpdates()
  await removeAll(keys.organisation(''))
})

const { push, stopDuring } = registry
const releaseNotesUrl = 'https://example.com/notes/1.2.0'

describe('a check', () => {
  test('returns the newest applicable release and the reasons against newer ones', async () => {
    await push('1.1.0')
    await push('1.2.0', { document: { releaseNotesUrl } })
    await push('1.3.0', { signer: 'stranger' })
    const result = await check(await newPlatformAdmin())
    expect(result).toEqual({
      currentVersion: version,
      latestVersion: '1.2.0',
      updateAvailable: true,
      releaseNotesUrl,
      checkedAt: expect.any(String),
      refused: [{ version: '1.3.0', reason: expect.stringContaining('no trusted key') }],
    })
    expect(UpdateCheck.parse(result)).toEqual(result)
    expect(Date.parse(result.checkedAt)).toBeLessThanOrEqual(now())
  })

  test('returns the rollback target and the running update', async () => {
    const caller = await newPlatformAdmin()
    await storeUpdateState({ version }, { version: '0.0.9' })
    expect(await check(caller)).toMatchObject({ previousVersion: '0.0.9' })
    const { jobId } = await update(caller, { action: 'rollback', force: true })
    expect(await check(caller)).toMatchObject({ previousVersion: '0.0.9', jobId })
    const operation = await updates.claimUpdateOperation(caller, jobId)
    await finishUpdate(operation, { status: 'Failed', outcome: 'No.' })
    expect(await check(caller)).toMatchObject({ previousVersion: '0.0.9' })
    expect(await check(caller)).not.toHaveProperty('jobId')
    // After a deployment the state of earlier updates does not apply.
    await storeUpdateState({ version: '0.0.8' }, { version: '0.0.7' })
    expect(await check(caller)).not.toHaveProperty('previousVersion')
  })
})

describe('a check without access to the registry', () => {
  test('returns the last result with its time', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0', { document: { releaseNotesUrl } })
    const result = await check(caller)
    advanceClock(60 * minuteMs)
    expect(await stopDuring(() => check(caller))).toEqual(result)
    const next = await check(caller)
    expect(next).toEqual({ ...result, checkedAt: next.checkedAt })
    expect(Date.parse(next.checkedAt)).toBeGreaterThanOrEqual(Date.parse(result.checkedAt) + 60 * minuteMs)
  })

  test('fails without a result of the same repository', async () => {
    const caller = await newPlatformAdmin()
    expect(await stopDuring(() => errorCodeOf(check(caller)))).toBe('release_source_unreachable')
    expect(await get(keys.updateCheck())).toBeUndefined()
    await push('1.2.0')
    await check(caller)
    await transact([patch(keys.updateCheck(), { set: { source: 'registry.example.com/other' } })])
    expect(await stopDuring(() => errorCodeOf(check(caller)))).toBe('release_source_unreachable')
  })

  test('does not offer a version that has been applied since', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await push('1.3.0', { signer: false })
    await check(caller)
    const [updatedModule, newerModule] = [await loadUpdatesAt('1.2.0'), await loadUpdatesAt('1.4.0')]
    const currentState = { currentVersion: '1.2.0', latestVersion: '1.2.0', updateAvailable: false }
    expect(await stopDuring(() => updatedModule.check(caller))).toMatchObject({
      ...currentState,
      refused: [{ version: '1.3.0' }],
    })
    expect(await stopDuring(() => newerModule.check(caller))).toMatchObject({ latestVersion: '1.4.0', refused: [] })
  })
})

describe('a new release', () => {
  const readAnnouncements = async (caller: Caller) =>
    (await readPendingEvents(caller, 'update.available')).map(({ data }) => data['version'])

  test('is announced once to platform administrators', async () => {
    const caller = await newPlatformAdmin()
    const colleague = await newCaller(caller.organisationId, 'OrgAdmin')
    await push('1.2.0', { document: { releaseNotesUrl } })
    for (let round = 0; round < 3; round++) await check(caller)
    await checkRegularly()
    const [event, ...others] = await readPendingEvents(caller, 'update.available')
    expect(others).toEqual([])
    const data = { version: '1.2.0', currentVersion: version, releaseNotesUrl }
    expect(event).toMatchObject({ subject: '1.2.0', data })
    expect(eventSchemas['update.available'].parse(event?.data)).toEqual(data)
    await drainOutbox(caller.organisationId)
    expect((await listNotifications(caller)).items).toMatchObject([
      { type: 'UpdateAvailable', severity: 'info', resource: '1.2.0', body: expect.stringContaining(releaseNotesUrl) },
    ])
    expect((await listNotifications(colleague)).items).toEqual([])
  })

  test('is announced once by concurrent checks', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    await Promise.all([1, 2, 3, 4].map(() => check(caller)))
    runBefore(/TransactWrite/, () => check(caller))
    await check(caller)
    expect(await readAnnouncements(caller)).toEqual(['1.2.0'])
  })

  test('is not announced again after it was withdrawn', async () => {
    const caller = await newPlatformAdmin()
    const withdraw = (tag: string) => registry.client.remove(registry.repository, tag)
    const changes = [
      () => push('1.2.0'),
      () => push('1.3.0'),
      () => withdraw('1.3.0'),
      () => push('1.3.0'),
      () => withdraw('1.3.0'),
      () => push('1.2.1'),
    ]
    for (const change of changes) {
      await change()
      await check(caller)
    }
    expect(await readAnnouncements(caller)).toEqual(['1.2.0', '1.3.0', '1.2.1'])
  })

  test('is announced when it becomes applicable', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0', { signer: false })
    await check(caller)
    expect(await readAnnouncements(caller)).toEqual([])
    await push('1.2.0')
    await check(caller)
    expect(await readAnnouncements(caller)).toEqual(['1.2.0'])
  })
})

describe('a scheduled check', () => {
  test('announces a release and stores the result', async () => {
    const caller = await newPlatformAdmin()
    await push('1.2.0')
    expect(await countStoreCalls(checkRegularly)).toBe(3)
    expect(await readPendingEvents(caller, 'update.available')).toHaveLength(1)
    const checkedAt = iso(Number((await get(keys.updateCheck()))?.['checkedAtMs']))
    expect(await stopDuring(() => check(caller))).toMatchObject({ latestVersion: '1.2.0', checkedAt })
  })

  test('does nothing before setup is complete, and ignores an unreachable registry', async () => {
    await push('1.2.0')
    expect(await countStoreCalls(checkRegularly)).toBe(1)
    await newPlatformAdmin()
    expect(await stopDuring(checkRegularly)).toBeUndefined()
    expect(await get(keys.updateCheck())).toBeUndefined()
  })
})

async function atEachCall(
  when: 'before' | 'after',
  scenario: (caller: Caller, crash: (work: () => Promise<unknown>) => Promise<void>) => Promise<void>,
): Promise<void> {
  const lastCall = { isCrashed: true }
  for (let nth = 1; lastCall.isCrashed; nth++) {
    // An update reads the jobs of each organisation with recent changes, which would change the number of calls.
    await removeAll(keys.organisation(''))
    const caller = await newPlatformAdmin()
    await clearUpdates()
    await scenario(caller, async (work) => void (lastCall.isCrashed = await crashAtCall(nth, when, work)))
  }
}

describe('a crash', () => {
  beforeEach(() => push('1.2.0'))

  const moments = ['before', 'after'] as const
  const request = { action: 'apply', targetVersion: '1.2.0' } as const

  test.each(moments)('requests an update completely or not at all after a crash %s any store call', (when) =>
    atEachCall(when, async (caller, crash) => {
      const { organisationId } = caller
      await crash(() => update(caller, request))
      const { jobId } = await readUpdateState()
      const isLocked = jobId !== undefined
      expect(await readPendingEvents(caller, 'update.started', 'job.queued')).toHaveLength(isLocked ? 2 : 0)
      const audits = (await readPendingRecords(organisationId)).filter(({ audit }) => audit?.action === 'update.apply')
      expect(audits).toHaveLength(Number(isLocked))
      if (isLocked) expect(await findOperation({ organisationId, jobId })).toBeDefined()
      expect(await errorCodeOf(update(caller, request))).toBe(isLocked ? 'update_in_progress' : 'no error')
      // The sweep sends a lost message.
      await receiveMessages(config.PLAT_QUEUE_UPDATES)
      advanceClock(2 * minuteMs)
      await sweep()
      const message = { organisationId, jobId: (await readUpdateState()).jobId }
      expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toContainEqual(message)
    }),
  )

  test.each(moments)('finishes an update once after a crash of its worker %s any store call', (when) =>
    atEachCall(when, async (caller, crash) => {
      const { jobId } = await update(caller, request)
      const operation = await updates.claimUpdateOperation(caller, jobId)
      await crash(() => finishUpdate(operation, { status: 'Completed', outcome: '' }))
      advanceClock(operationLeaseMs + 1)
      const next = await claimed(operation).catch(() => undefined)
      expect(await readUpdateState()).toMatchObject(next === undefined ? { current: { version: '1.2.0' } } : { jobId })
      if (next !== undefined) await finishUpdate(next, { status: 'Completed', outcome: '' })
      const { jobId: lock, current, previous } = await readUpdateState()
      expect([lock, current?.version, previous?.version]).toEqual([undefined, '1.2.0', version])
      expect(await readPendingEvents(caller, 'update.completed', 'update.failed')).toHaveLength(1)
    }),
  )

  test.each(moments)('announces a release once after a crash of a check %s any store call', (when) =>
    atEachCall(when, async (caller, crash) => {
      await crash(() => check(caller))
      await check(caller)
      await check(caller)
      expect(await readPendingEvents(caller, 'update.available')).toHaveLength(1)
    }),
  )
})
