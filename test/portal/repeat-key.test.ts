import { expect, test } from 'vitest'
import { withIdempotencyKey } from '../../packages/portal/src/api/idempotency-key.ts'

/** Under which key a POST is sent when it is sent once more. */

let count = 0
const post = (name = `cluster ${count++}`) =>
  new Request('https://platform.example.com/api/v1/clusters', { method: 'POST', body: JSON.stringify({ name }) })

test.each([500, 502, 503, 504])(
  'what was answered with %d may have been done: the same goes under the same key',
  async (status) => {
    const request = post()
    const first = await withIdempotencyKey(request)
    first.settle(new Response(null, { status }))
    expect((await withIdempotencyKey(request)).key).toBe(first.key)
  },
)

test('what no answer came to goes under the same key; what is another goes under another', async () => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(undefined)
  expect((await withIdempotencyKey(post())).key).not.toBe(first.key)
  expect((await withIdempotencyKey(request)).key).toBe(first.key)
})

test.each([201, 409, 429])('what was answered with %d is over: the same is another the next time', async (status) => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(new Response(null, { status }))
  expect((await withIdempotencyKey(request)).key).not.toBe(first.key)
})

test.each([401, 403, 429])('%d says nothing of a try before whose answer was lost: its key stays', async (status) => {
  const request = post()
  const first = await withIdempotencyKey(request)
  first.settle(undefined)
  const second = await withIdempotencyKey(request)
  second.settle(new Response(null, { status }))
  expect((await withIdempotencyKey(request)).key).toBe(first.key)
})
