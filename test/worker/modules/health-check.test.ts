import { type StoredCheck } from '@platform/core/modules/record'
import { healthOf } from '@platform/worker/modules/health-check'
import { ownEvents } from '@platform/worker/modules/lifecycle/published'
import { dueJobs, type JobSchedule } from '@platform/worker/modules/job-schedule'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

const check = (status: StoredCheck['status'], ...tags: StoredCheck['tags']): StoredCheck => ({
  name: 'check',
  status,
  tags,
  description: '',
  durationMs: 1,
  checkedAtMs: 1,
})

const job = (intervalSeconds: number) => [{ id: 'job', description: '', intervalSeconds }]

/** When a job is called that is looked at at these times. */
function calls(intervalSeconds: number, ticksMs: readonly number[]): number[] {
  let before: JobSchedule = {}
  return ticksMs.filter((tickMs) => {
    const { due, slots } = dueJobs(job(intervalSeconds), before, tickMs)
    before = slots
    return due.length > 0
  })
}

test('a job may have a name that every object has', () => {
  const [constructor] = job(60).map((one) => ({ ...one, id: 'constructor' }))
  if (constructor === undefined) throw new Error('no job')
  expect(dueJobs([constructor], {}, 1000)).toEqual({ due: [constructor], slots: { constructor: 1000 } })
  expect(dueJobs([constructor], { constructor: 1000 }, 2000).due).toEqual([])
})

const minutes = (count: number) => Array.from({ length: count }, (_, index) => index * 60_000)

const early = (intervalSeconds: number) => Math.min(5000, intervalSeconds * 500)

const told = (published: object) => ownEvents('hello', [{ type: 'module.hello.done', data: {}, ...published }])

const nested = (levels: number): object => (levels === 0 ? {} : { deeper: nested(levels - 1) })

describe('the health of a module', () => {
  test.each([
    [[], 'Healthy'],
    [[check('Healthy', 'critical')], 'Healthy'],
    [[check('Unhealthy', 'critical')], 'Unhealthy'],
    [[check('Degraded', 'critical')], 'Degraded'],
    [[check('Unhealthy', 'degradable')], 'Degraded'],
    [[check('Unhealthy', 'informational')], 'Healthy'],
    [[check('Unhealthy')], 'Degraded'],
    [[check('Unhealthy', 'informational', 'critical')], 'Unhealthy'],
    [[check('Unhealthy', 'informational', 'degradable')], 'Degraded'],
    [[check('Healthy', 'critical'), check('Unhealthy', 'degradable')], 'Degraded'],
    [[check('Degraded', 'degradable'), check('Unhealthy', 'critical')], 'Unhealthy'],
  ] as const)('%j is %s', (checks, health) => {
    const beats = { checks: [...checks], missedRuns: {} }
    expect(healthOf({ ...beats, missed: 0 })).toBe(health)
    expect(healthOf({ ...beats, missed: 1, missedRuns: { job: 1 } })).toBe(health)
    expect(healthOf({ ...beats, missed: 2 })).toBe('Unhealthy')
    expect(healthOf({ ...beats, missed: 0, missedRuns: { job: 2 } })).toBe('Unhealthy')
  })
})

describe('background jobs', () => {
  test('of the interval of the ticks are called at every tick, also where those are not to the second', () => {
    for (const wobble of [0, 200, 2000, 4000]) {
      const ticks = minutes(50).map((ms, index) => 1_000_000 + ms + (index % 2 === 0 ? 0 : wobble))
      expect(calls(60, ticks)).toEqual(ticks)
    }
  })

  test('of a longer interval are called as often as it says, on the average', () => {
    expect(calls(90, minutes(19))).toHaveLength(13)
    expect(calls(3600, minutes(181))).toHaveLength(4)
  })

  test('that were forgotten for long are called once', () => {
    expect(calls(60, [0, 86_400_000, 86_400_001])).toEqual([0, 86_400_000])
  })

  test('are never called twice in one interval, however the ticks come', () => {
    const ticks = fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 2, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), ticks, (intervalSeconds, steps) => {
        let atMs = 1_000_000
        const called = calls(
          intervalSeconds,
          steps.map((step) => (atMs += step)),
        )
        const slotOf = (ms: number) =>
          Math.floor((ms - (called[0] ?? 0) + early(intervalSeconds)) / (intervalSeconds * 1000))
        expect(new Set(called.map(slotOf)).size).toBe(called.length)
      }),
      { seed: 4 },
    )
  })
})

describe('what a module publishes', () => {
  test('is told under its own name, about itself where it does not say what about', () => {
    expect(told({})).toEqual([{ name: 'module.hello.done', subject: 'hello', data: {} }])
    expect(told({ type: 'module.hello.a.b_c', subject: 'x', data: { a: [1] } })).toEqual([
      { name: 'module.hello.a.b_c', subject: 'x', data: { a: [1] } },
    ])
  })

  test.each([
    ['of another module', { type: 'module.hello-world.done' }],
    ['of the platform', { type: 'platform.module.installed' }],
    ['of the platform about modules', { type: 'module.installed' }],
    ['without a name', { type: 'module.hello.' }],
    ['of a name that is too long', { type: `module.hello.${'x'.repeat(200)}` }],
    ['about too much', { subject: 'x'.repeat(201) }],
    ['that is too large', { data: { text: 'x'.repeat(8192) } }],
    ['that is nested too deep', { data: nested(17) }],
  ])('%s is not told', (_, published) => {
    expect(told(published)).toEqual([])
  })

  test('is told in its order, and no more of it than an answer may carry', () => {
    const many = Array.from({ length: 25 }, (_, index) => ({ type: 'module.hello.done', data: { index } }))
    expect(ownEvents('hello', many).map(({ data }) => data['index'])).toEqual(
      Array.from({ length: 20 }, (_, index) => index),
    )
  })
})
