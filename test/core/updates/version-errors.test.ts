import { createRoute, json } from '@platform/contract/endpoint'
import { now, shiftClock } from '@platform/core/clock'
import { platformError } from '@platform/core/error'
import { version } from '@platform/core/lib/version'
import { isCounted } from '@platform/core/updates/counted-error'
import { countVersionError, versionErrorsSince } from '@platform/core/updates/error-count'
import { consume } from '@platform/http/consume'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { onSchedule } from '@platform/http/schedule'
import { serve } from '@platform/http/serve'
import { beforeEach, expect, test } from 'vitest'
import * as z from 'zod'
import { captureLog } from '../../support/log.ts'
import { send } from '../../support/request.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { waitFor } from '../../support/wait-for.ts'

const minuteMs = 60_000

beforeEach(() => shiftClock(10 * minuteMs))

/** Returns the errors of the last minute. `beforeEach` excludes the errors of earlier tests. */
const countedErrors = () => versionErrorsSince(version, now() - minuteMs)

test('counts an error for the running version', async () => {
  await countVersionError()
  expect(await countedErrors()).toBe(1)
  expect(await versionErrorsSince('9.9.9', now() - minuteMs)).toBe(0)
})

test('sums the errors since the given minute', async () => {
  for (const _ of [1, 2, 3]) {
    await countVersionError()
    shiftClock(minuteMs)
  }
  expect(await versionErrorsSince(version, now() - 2 * minuteMs)).toBe(2)
  expect(await versionErrorsSince(version, now() - 9 * minuteMs)).toBe(3)
})

test('writes concurrent errors with one call', async () => {
  let calls = 0
  using _ = onStoreCall({ before: async () => void calls++ })
  await Promise.all(Array.from({ length: 50 }, countVersionError))
  expect(calls).toBe(1)
  await waitFor('all errors are counted', async () => (await countedErrors()) === 50)
})

const page = { method: 'get', access: 'public', tags: ['Test'], summary: 'Test' } as const
const responses = { 200: { description: 'OK', content: json(z.object({})) } } as const
const api = serve(
  route(createRoute({ ...page, path: '/broken', responses }), () => {
    throw new Error('a defect')
  }),
  route(createRoute({ ...page, path: '/unavailable', responses }), () => {
    throw platformError('database_unavailable')
  }),
  route(createRoute({ ...page, path: '/valid', responses }), () => result(200, {})),
)

const message = (body: string) => ({ Records: [{ messageId: '1', body }] })
const consumer = consume(z.object({ id: z.string() }), async () => undefined)

test.each<[string, number, () => Promise<unknown>]>([
  ['an unavailable store', 0, () => send(api, { target: '/unavailable' })],
  ['an unknown path', 0, () => send(api, { target: '/nothing' })],
  ['a successful request', 0, () => send(api, { target: '/valid' })],
  ['an unexpected error of a request', 1, () => send(api, { target: '/broken' })],
  ['a processed message', 0, () => consumer(message('{"id":"a"}'))],
  ['a failed message', 1, () => consumer(message('no json'))],
  ['a successful scheduled run', 0, () => onSchedule('sweep', async () => undefined)()],
  ['a failed scheduled run', 1, () => onSchedule('sweep', () => Promise.reject(new Error('failed')))()],
])('counts %s as %i errors', async (_, count, work) => {
  await captureLog(() => work().catch(() => undefined))
  expect(await countedErrors()).toBe(count)
})

test('marks the error of a scheduled run as counted', async () => {
  const failure = new Error('failed')
  await captureLog(() => onSchedule('sweep', () => Promise.reject(failure))().catch(() => undefined))
  expect([isCounted(failure), isCounted(new Error('other'))]).toEqual([true, false])
})

test('tries a failing write once a second, logs nothing more, and counts the errors later', async () => {
  let writes = 0
  const reject = () => {
    writes++
    return Promise.reject(new Error('Not authorized to perform dynamodb:UpdateItem.'))
  }
  const statuses: unknown[] = []
  {
    using _ = onStoreCall({ before: reject })
    const lines = await captureLog(async () => {
      for (let count = 0; count < 5; count++) statuses.push((await send(api, { target: '/broken' })).status)
    })
    expect([lines.length, writes]).toEqual([5, 1])
  }
  expect(statuses).toEqual(Array(5).fill(500))
  shiftClock(1000)
  await countVersionError()
  expect(await countedErrors()).toBe(6)
})
