import { expect, test, vi } from 'vitest'
import { now } from '@platform/core/clock'
import { exceedsErrorBudget } from '@platform/worker/updates/bake'
import { MemoryTarget, type TargetCall } from './support/memory-target.ts'
import { advance, attempt, countErrors, expectAttempt, queueUpdate, setUpUpdates } from './support/updating.ts'

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
const { newReleases, newUpdate } = await setUpUpdates(feed)

test.each([
  // share, faults, faultsBeside, usualFaults, exceeds
  [10, 2, 0, 0, false],
  [10, 3, 0, 0, true],
  [50, 3, 1, 0, true],
  [50, 3, 2, 0, false],
  [100, 3, 0, 0, true],
  // In proportion to the share: the old version counts 90 at 90 %.
  [10, 10, 90, 0, false],
  [10, 20, 90, 0, false],
  [10, 21, 90, 0, true],
  [50, 100, 50, 0, false],
  [50, 101, 50, 0, true],
  // The old version has no traffic; its earlier errors count.
  [100, 20, 0, 10, false],
  [100, 21, 0, 10, true],
  [100, 20, 500, 0, true],
  // The old version has no errors now, but had some before.
  [10, 4, 0, 20, false],
  [10, 5, 0, 20, true],
] as const)(
  'at %i percent, %i errors against %i of the old version, which had %i before, exceed the budget: %s',
  (share, faults, faultsBeside, usualFaults, exceeds) => {
    expect(exceedsErrorBudget({ share, faults, faultsBeside, usualFaults })).toBe(exceeds)
  },
)

test('bakes for the configured time', async () => {
  const { older, newer } = await newReleases()
  const target = new MemoryTarget(newer)
  let checks = 0
  target.hook.before = async ({ name, input: [, functionName, event] }) => {
    const isCheck = name === 'invoke' && functionName === 'health' && !(event as any).platformProbe
    if (isCheck && target.share !== undefined) checks++
  }
  await attempt(await queueUpdate({ action: 'rollback', release: older, before: newer }), target.port)
  // At the start, and after one second.
  expect(checks).toBe(2)
  expect(target.whole).toEqual(older)
})

test('fails a release with more errors than the old version used to have', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name }) => {
    if (name === 'shift') await countErrors(newer.version, 4)
  }
  await countErrors(older.version, 30)
  await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
})

test('fails a release that stops responding', async () => {
  const { target, update, newer } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' && input[1] === 50) target.behaviours.set(newer.version, () => ({ statusCode: 500 }))
  }
  await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([10, 50].map((share) => `${newer.version} ${share}`))
})

test('accepts errors that both versions have', async () => {
  const { target, update, newer, older } = await newUpdate()
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    await countErrors(newer.version, Number(input[1]) / 10)
    await countErrors(older.version, 10 - Number(input[1]) / 10)
  }
  await countErrors(older.version, 3000)
  await expectAttempt(update, target, 'Completed')
})

/** Five seconds pass with each health check. */
const slowChecks = async ({ name, input }: TargetCall) => {
  if (name === 'invoke' && input[1] === 'health') advance(5000)
}

test('adds errors that the host counts to those that functions count', async () => {
  const { target, update, newer, older } = await newUpdate()
  let lost = 7
  target.unanswered.set(newer.version, () => ({ faults: lost }))
  target.hook.after = async ({ name }) => {
    if (name !== 'shift') return
    lost += 2
    await countErrors(newer.version, 1)
  }
  const output = await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
  const beside = `version ${older.version} 0 times in the same time`
  expect(output.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 3 times in a while at 10 %, ${beside}. Version ${older.version} serves.`,
  )
})

test('accepts requests that neither version answers, also at 100 percent', async () => {
  const { target, update, newer, older } = await newUpdate()
  const startedMs = now()
  let [ofNew, ofOld] = [0, 0]
  target.unanswered.set(newer.version, () => ({ faults: ofNew }))
  target.unanswered.set(older.version, (sinceMs) => ({ faults: ofOld + (sinceMs < startedMs ? 3000 : 0) }))
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    ofNew += Number(input[1]) / 10
    ofOld += 10 - Number(input[1]) / 10
  }
  await expectAttempt(update, target, 'Completed')
})

test('keeps a share until requests in flight are answered, and fails when they time out', async () => {
  const { target, update, newer } = await newUpdate()
  let beganMs: number | undefined
  target.hook.before = slowChecks
  target.hook.after = async ({ name }) => {
    if (name === 'shift') beganMs ??= now()
  }
  target.unanswered.set(newer.version, () => {
    if (beganMs === undefined) return { faults: 0 }
    return now() < beganMs + 30_000 ? { faults: 0, oldestMs: beganMs } : { faults: 3 }
  })
  await expectAttempt(update, target, 'Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
})

test('limits the wait, and does not wait for requests that began after the bake time', async () => {
  const { target, update, newer } = await newUpdate()
  const bakedMs: number[] = []
  let [share, shiftedMs] = [0, 0]
  target.hook.before = slowChecks
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' || name === 'commit') {
      if (share > 0) bakedMs.push(now() - shiftedMs)
      ;[share, shiftedMs] = [Number(input[1]), now()]
    }
  }
  // At 10 percent one request never ends; later there is always one that has just begun.
  target.unanswered.set(newer.version, () => ({ faults: 0, oldestMs: share === 10 ? shiftedMs : now() }))
  await expectAttempt(update, target, 'Completed')
  const [atTen = 0, ...others] = bakedMs
  expect(atTen).toBeGreaterThan(30_000)
  expect(atTen).toBeLessThan(60_000)
  expect(Math.max(...others)).toBeLessThan(25_000)
})
