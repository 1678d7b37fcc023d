import { expect, test } from 'vitest'
import { ApiError } from '../../packages/portal/src/api/api-error.ts'
import { withIdempotencyKey } from '../../packages/portal/src/api/idempotency-key.ts'
import { backOffMs, pollEvery } from '../../packages/portal/src/api/query.ts'

const pollMs = (state: object) =>
  pollEvery(4)({ state: { status: 'error', dataUpdatedAt: 0, errorUpdatedAt: 1e12, errorUpdateCount: 1, ...state } })

test('polls successful queries at their interval', () => {
  expect(pollMs({ status: 'success', dataUpdatedAt: 1e12 })).toBe(4000)
})

test('polls a failing query less often the longer it fails, at least once a minute', () => {
  const delays = [1000, 9000, 600_000].map((failingMs) => pollMs({ dataUpdatedAt: 1e12 - failingMs }))
  expect(delays).toEqual([4000, 9000, 60_000])
})

test('backs off a query that never succeeded', () => {
  const delays = [1, 2, 3, 4, 30].map((errorUpdateCount) => pollMs({ errorUpdateCount }))
  expect(delays).toEqual([4000, 4000, 8000, 16_000, 60_000])
})

test('honours Retry-After', () => {
  const rateLimited = new ApiError(429, {}, new Headers({ 'retry-after': '30' }))
  expect(backOffMs(0, rateLimited)).toBe(30_000)
  expect(backOffMs(2, new Error('no response'))).toBe(4000)
})

let count = 0
const post = (name = `cluster ${count++}`) =>
  new Request('https://platform.example.com/api/v1/clusters', { method: 'POST', body: JSON.stringify({ name }) })
const respond = (status: number | undefined) => (status === undefined ? undefined : new Response(null, { status }))

test.each([undefined, 500, 502, 503, 504])('keeps the idempotency key after response %s', async (status) => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).toBe(first.key)
  expect((await withIdempotencyKey(post())).key).not.toBe(first.key)
})

test.each([201, 409, 429])('uses a new idempotency key after response %d', async (status) => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).not.toBe(first.key)
})

test.each([401, 403, 429])('keeps the key of a lost response after response %d to its retry', async (status) => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(undefined)
  const second = await withIdempotencyKey(request)
  second.settle(respond(status))
  expect((await withIdempotencyKey(request)).key).toBe(first.key)
})
