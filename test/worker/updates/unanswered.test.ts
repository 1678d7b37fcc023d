import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { now } from '@platform/core/clock'
import { started } from '../../support/world.ts'
import { updatesFrom } from './support/applying.ts'
import { type TargetCall } from './support/memory-target.ts'
import { clockBack, expectWhole, fails, jobOf, later, work } from './support/updating.ts'

/** What functions leave without an answer: they cannot count it, and what they run on does. */

const feed = await vi.hoisted(async () => (await import('./support/feed.ts')).startFeed())
afterAll(feed.close)
afterEach(clockBack)
await started()
const { applying } = updatesFrom(feed)

/** Ten seconds pass with each look at a release. */
const before = async ({ name, input }: TargetCall) => {
  if (name === 'invoke' && input[1] === 'health') later(5000)
}

test('what a release cannot count itself is counted by what it runs on, and added to what it counts', async () => {
  const { target, accepted, newer, older } = await applying()
  let lost = 7
  target.unanswered.set(newer.version, () => ({ faults: lost }))
  target.hook.after = async ({ name }) => {
    if (name !== 'shift') return
    lost += 2
    await fails(newer.version, 1)
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
  const beside = `version ${older.version} 0 times in the same time`
  expect((await jobOf(accepted)).result?.output?.replace(/in \d+ s/, 'in a while')).toBe(
    `Version ${newer.version} failed 3 times in a while at 10 %, ${beside}. Version ${older.version} serves.`,
  )
})

test('what neither version answers is no fault of the new one, also where nothing of the old one is left to compare', async () => {
  const { target, accepted, newer, older } = await applying()
  const startedMs = now()
  let [ofNew, ofOld] = [0, 0]
  target.unanswered.set(newer.version, () => ({ faults: ofNew }))
  target.unanswered.set(older.version, (sinceMs) => ({ faults: ofOld + (sinceMs < startedMs ? 3000 : 0) }))
  target.hook.after = async ({ name, input }) => {
    if (name !== 'shift') return
    ofNew += Number(input[1]) / 10
    ofOld += 10 - Number(input[1]) / 10
  }
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
})

test('a release keeps its share until it has answered what it was asked, and fails by what times out', async () => {
  const { target, accepted, newer } = await applying()
  let beganMs: number | undefined
  target.hook.before = before
  target.hook.after = async ({ name }) => {
    if (name === 'shift') beganMs ??= now()
  }
  target.unanswered.set(newer.version, () => {
    if (beganMs === undefined) return { faults: 0 }
    return now() < beganMs + 30_000 ? { faults: 0, oldestMs: beganMs } : { faults: 3 }
  })
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Failed')
  expect(target.shares).toEqual([`${newer.version} 10`])
})

test('a release is not watched for ever, nor for what it is asked after its time', async () => {
  const { target, accepted, newer } = await applying()
  const watchedMs: number[] = []
  let [share, shiftedMs] = [0, 0]
  target.hook.before = before
  target.hook.after = async ({ name, input }) => {
    if (name === 'shift' || name === 'commit') {
      if (share > 0) watchedMs.push(now() - shiftedMs)
      ;[share, shiftedMs] = [Number(input[1]), now()]
    }
  }
  // One that lasts, at first; then there is always one that has just begun.
  target.unanswered.set(newer.version, () => ({ faults: 0, oldestMs: share === 10 ? shiftedMs : now() }))
  await work(accepted, target.port)
  expect(await expectWhole(accepted, target)).toBe('Completed')
  const [atTen = 0, ...others] = watchedMs
  expect(atTen).toBeGreaterThan(30_000)
  expect(atTen).toBeLessThan(60_000)
  expect(Math.max(...others)).toBeLessThan(25_000)
})
