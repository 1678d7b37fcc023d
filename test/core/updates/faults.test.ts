import { sweep } from '@platform/core/background/sweep'
import { type Caller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { version } from '@platform/core/lib/version'
import { findOperation, operationLeaseMs } from '@platform/core/operations/operation'
import { check } from '@platform/core/updates/check'
import { finishUpdate } from '@platform/core/updates/finish'
import { update } from '@platform/core/updates/request'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { bootstrapPlatform, errorCodeOf } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { receiveMessages } from '../support/messages.ts'
import { advanceClock } from '../../support/clock.ts'
import { minute } from '../support/notifications.ts'
import { claimed } from '../support/operations.ts'
import { pendingRecords } from '../support/outbox.ts'
import * as updates from '../support/updates.ts'

const { clearUpdates, newPlatformAdmin, pendingEvents, readUpdateState } = updates
const registry = await vi.hoisted(async () => (await import('../../support/release.ts')).startReleaseFixtures())
afterAll(registry.close)
await bootstrapPlatform()
beforeEach(async () => {
  await registry.clear()
  await registry.push('1.2.0')
  await removeAll(keys.organisation(''))
  await clearUpdates()
})

/** Fails all store calls from the n-th one: before it is made, or after it has taken effect. */
async function crashAt(n: number, when: 'before' | 'after', work: () => Promise<unknown>): Promise<boolean> {
  let calls = 0
  const failIf = async (isCrashed: boolean) => {
    if (isCrashed) throw new Error('The connection has ended.')
  }
  using _ = onStoreCall({
    before: () => failIf(calls >= n || (++calls === n && when === 'before')),
    after: () => failIf(calls === n),
  })
  await work().catch(() => undefined)
  return calls >= n
}

/** Runs the scenario with a crash at each store call of the work until the work makes fewer calls. */
async function atEachCall(
  when: 'before' | 'after',
  scenario: (caller: Caller, crash: (work: () => Promise<unknown>) => Promise<void>) => Promise<void>,
): Promise<void> {
  const last = { isCrashed: true }
  for (let n = 1; last.isCrashed; n++) {
    const caller = await newPlatformAdmin()
    await clearUpdates()
    await scenario(caller, async (work) => void (last.isCrashed = await crashAt(n, when, work)))
  }
}

const moments = ['before', 'after'] as const
const request = { action: 'apply', targetVersion: '1.2.0' } as const

test.each(moments)('requests an update completely or not at all after a crash %s any store call', (when) =>
  atEachCall(when, async (caller, crash) => {
    const { organisationId } = caller
    await crash(() => update(caller, request))
    const { jobId } = await readUpdateState()
    const isLocked = jobId !== undefined
    expect(await pendingEvents(caller, 'update.started', 'job.queued')).toHaveLength(isLocked ? 2 : 0)
    const audits = (await pendingRecords(organisationId)).filter(({ audit }) => audit?.action === 'update.apply')
    expect(audits).toHaveLength(Number(isLocked))
    if (isLocked) expect(await findOperation({ organisationId, jobId })).toBeDefined()
    expect(await errorCodeOf(update(caller, request))).toBe(isLocked ? 'update_in_progress' : 'no error')
    // The sweep sends a lost message.
    await receiveMessages(config.PLAT_QUEUE_UPDATES)
    advanceClock(2 * minute)
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
    expect(await pendingEvents(caller, 'update.completed', 'update.failed')).toHaveLength(1)
  }),
)

test.each(moments)('announces a release once after a crash of a check %s any store call', (when) =>
  atEachCall(when, async (caller, crash) => {
    await crash(() => check(caller))
    await check(caller)
    await check(caller)
    expect(await pendingEvents(caller, 'update.available')).toHaveLength(1)
  }),
)
