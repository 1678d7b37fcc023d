import { expect, test } from 'vitest'
import { ApiError } from '../../packages/portal/src/api/api-error.ts'
import { backOffMs, pollEvery } from '../../packages/portal/src/api/query.ts'

/** How long the portal waits until it asks again. */

const pauseMs = (state: object) =>
  pollEvery(4)({ state: { status: 'error', dataUpdatedAt: 0, errorUpdatedAt: 1e12, errorUpdateCount: 1, ...state } })

test('what answers is asked every so often', () => {
  expect(pauseMs({ status: 'success', dataUpdatedAt: 1e12 })).toBe(4000)
})

test('what has answered before is asked after as long as it has failed, once a minute at least', () => {
  const pauses = [1000, 9000, 600_000].map((sinceMs) => pauseMs({ dataUpdatedAt: 1e12 - sinceMs }))
  expect(pauses).toEqual([4000, 9000, 60_000])
})

test('what has never answered is asked again soon, and then less and less', () => {
  const pauses = [1, 2, 3, 4, 30].map((errorUpdateCount) => pauseMs({ errorUpdateCount }))
  expect(pauses).toEqual([4000, 4000, 8000, 16_000, 60_000])
})

test('a call that is tried again waits as long as the platform asks for', () => {
  const busy = new ApiError(429, {}, new Headers({ 'retry-after': '30' }))
  expect(backOffMs(0, busy)).toBe(30_000)
  expect(backOffMs(2, new Error('no answer'))).toBe(4000)
})
