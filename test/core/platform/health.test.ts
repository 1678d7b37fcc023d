import { ready } from '@platform/core/platform/health'
import { checkWrites } from '@platform/core/platform/write-check'
import { beforeEach, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, expectError } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'

beforeEach(() => bootstrapPlatform())

const minuteMs = 60_000

test.each([
  [2 * minuteMs, 'Healthy', 'ok'],
  [3 * minuteMs, 'Unhealthy', 'unavailable'],
  [24 * 60 * minuteMs, 'Unhealthy', 'unavailable'],
  [-30 * minuteMs, 'Unhealthy', 'unavailable'],
])(
  'when writes have failed for %i ms, the check of writes is %s and readiness %s',
  async (elapsedMs, checkStatus, readiness) => {
    await checkWrites()
    const { ready: isReady, body } = await ready()
    expect([isReady, body.checks.map(({ name }) => name)]).toEqual([true, ['database', 'database-writes']])
    advanceClock(elapsedMs)
    using failing = onStoreCall({
      before: async ({ command }) => {
        if (command.startsWith('Update')) throw Object.assign(new Error('Full'), { name: 'StorageFullException' })
      },
    })
    await expectError(checkWrites(), 'storage_full')
    const { checks, status } = (await ready()).body
    expect([status, checks[1]]).toMatchObject([readiness, { status: checkStatus, tags: ['critical'] }])
    expect(checks[1]?.checkedAt).toBe(body.checks[1]?.checkedAt)
    failing[Symbol.dispose]()
    await checkWrites()
    expect((await ready()).ready).toBe(true)
  },
)
