import { isSameRelease } from '@platform/core/updates/release-identity'
import { type UpdatePlan } from '@platform/core/updates/record'
import { trafficStepsOf } from '@platform/worker/updates/traffic-steps'
import { expect, test } from 'vitest'

const one = { version: '1.2.0', digest: `sha256:${'1'.repeat(64)}`, repository: 'one.example.com/releases' }

test('a release is the same wherever it comes from, and another one by its version or its digest', () => {
  expect(isSameRelease(one, { ...one, repository: 'two.example.com/releases' })).toBe(true)
  expect(isSameRelease(one, { ...one, version: '1.2.1' })).toBe(false)
  expect(isSameRelease(one, { ...one, digest: `sha256:${'2'.repeat(64)}` })).toBe(false)
  expect(isSameRelease(one, { version: '1.2.0' })).toBe(false)
  expect(isSameRelease({ version: '1.2.0' }, { version: '1.2.0' })).toBe(true)
})

test('a release gets more and more; the way back gets all at once', () => {
  const plan: UpdatePlan = { action: 'apply', release: one, before: { version: '1.1.0' } }
  expect(trafficStepsOf(plan)).toEqual([10, 50, 100])
  expect(trafficStepsOf({ ...plan, action: 'rollback' })).toEqual([100])
})
