import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { type Caller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { findOperation, operationLeaseMs } from '@platform/core/operations/operation'
import { sweep } from '@platform/core/background/sweep'
import { update } from '@platform/core/updates/request'
import { check } from '@platform/core/updates/check'
import { finishUpdate } from '@platform/core/updates/finish'
import { version } from '@platform/core/lib/version'
import { errorCodeOf, bootstrapPlatform } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import { receiveMessages } from '../support/messages.ts'
import { claimed } from '../support/operations.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { advanceClock, minute } from '../support/notifications.ts'
import {
  newPlatformAdmin,
  pendingEvents,
  clearUpdates,
  storeUpdateState,
  readUpdateState,
  claimUpdateOperation,
} from '../support/updates.ts'

const world = await vi.hoisted(async () => (await import('../support/release-registry.ts')).startReleaseFixtures())
afterAll(world.close)
await bootstrapPlatform()
beforeEach(async () => {
  await world.clear()
  await world.push('1.2.0')
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

const ended = () => new Error('The connection has ended.')

/** Some work whose connection to the store ends at its n-th call: before it is made, or before its answer is heard. */
async function cutOff(work: () => Promise<unknown>, n: number, when: 'before' | 'after'): Promise<boolean> {
  let calls = 0
  using _ = onStoreCall({
    before: async () => {
      if (calls >= n || (++calls === n && when === 'before')) throw ended()
    },
    after: async () => {
      if (calls === n) throw ended()
    },
  })
  await work().catch(() => undefined)
  return calls >= n
}

const wholes = ['before', 'after'] as const
const request = { action: 'apply', targetVersion: '1.2.0' } as const

/** The lock, the job and what is told of them are there together or not at all. */
async function expectWhole(caller: Caller): Promise<string | undefined> {
  const { jobId } = await readUpdateState()
  const told = await pendingEvents(caller, 'update.started', 'job.queued')
  const audited = (await pendingRecords(caller.organisationId)).filter(({ audit }) => audit?.action === 'update.apply')
  expect([told.length, audited.length]).toEqual(jobId === undefined ? [0, 0] : [2, 1])
  const operation = jobId && (await findOperation({ organisationId: caller.organisationId, jobId }))
  expect(operation === undefined).toBe(jobId === undefined)
  return jobId
}

test.each(wholes)(
  'an update is asked for whole or not at all, wherever the store falls silent: %s it has answered',
  async (when) => {
    for (let [n, wasCut] = [1, true]; wasCut; n++) {
      const caller = await newPlatformAdmin()
      await clearUpdates()
      wasCut = await cutOff(() => update(caller, request), n, when)
      const jobId = await expectWhole(caller)
      const again = await errorCodeOf(update(caller, request))
      expect(again).toBe(jobId === undefined ? 'no error' : 'update_in_progress')
      // Nobody has sent the message: the sweep does.
      await receiveMessages(config.PLAT_QUEUE_UPDATES)
      advanceClock(2 * minute)
      await sweep()
      expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toContainEqual({
        organisationId: caller.organisationId,
        jobId: (await readUpdateState()).jobId,
      })
    }
  },
)

test.each(wholes)('an update ends whole, wherever its worker is cut off: %s the store has answered', async (when) => {
  for (let [n, wasCut] = [1, true]; wasCut; n++) {
    const caller = await newPlatformAdmin()
    await clearUpdates()
    const { jobId } = await update(caller, request)
    const operation = await claimUpdateOperation(caller, jobId)
    wasCut = await cutOff(() => finishUpdate(operation, { status: 'Completed', outcome: '' }), n, when)
    advanceClock(operationLeaseMs + 1)
    const next = await claimed(operation).catch(() => undefined)
    expect(await readUpdateState()).toMatchObject(next === undefined ? { current: { version: '1.2.0' } } : { jobId })
    if (next !== undefined) await finishUpdate(next, { status: 'Completed', outcome: '' })
    const { jobId: lock, current, previous } = await readUpdateState()
    expect([lock, current?.version, previous?.version]).toEqual([undefined, '1.2.0', version])
    expect(await pendingEvents(caller, 'update.completed', 'update.failed')).toHaveLength(1)
  }
})

test.each(wholes)(
  'a new release is told of once, wherever the look is cut off: %s the store has answered',
  async (when) => {
    for (let [n, wasCut] = [1, true]; wasCut; n++) {
      const caller = await newPlatformAdmin()
      await clearUpdates()
      wasCut = await cutOff(() => check(caller), n, when)
      await check(caller)
      await check(caller)
      expect(await pendingEvents(caller, 'update.available')).toHaveLength(1)
    }
  },
)

test('an update whose process ends when all is written, and nothing is announced, is found by the sweep', async () => {
  const caller = await newPlatformAdmin()
  await storeUpdateState({ version }, { version: '0.0.9' })
  vi.stubEnv('PLAT_FAILPOINT', 'commit.written=throw')
  vi.resetModules()
  const armed = await import('@platform/core/updates/request')
  vi.unstubAllEnvs()
  await expect(armed.update(caller, { action: 'rollback' })).rejects.toThrow('Failpoint commit.written')
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([])
  const { jobId } = await readUpdateState()
  advanceClock(2 * minute)
  await sweep()
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId: caller.organisationId, jobId }])
})
