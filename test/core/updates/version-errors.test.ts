import { createRoute, json } from '@platform/contract/endpoint'
import { now, shiftClock } from '@platform/core/clock'
import { platformError } from '@platform/core/error'
import { version } from '@platform/core/lib/version'
import { isCounted } from '@platform/core/updates/counted-error'
import { countVersionError, versionErrorsSince } from '@platform/core/updates/error-count'
import { consume } from '@platform/http/consume'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { scheduled } from '@platform/http/schedule'
import { serve } from '@platform/http/serve'
import { beforeEach, expect, test } from 'vitest'
import * as z from 'zod'
import { captureLog } from '../../support/log.ts'
import { send } from '../../support/request.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import { waitFor } from '../../support/wait-for.ts'

const minute = 60_000

/** Each test has minutes of its own, and the last write is long ago. */
beforeEach(() => shiftClock(10 * minute))

/** What has been counted since this test began. */
const counted = () => versionErrorsSince(version, now() - minute)

test('a failure counts against the version that had it, and no other one', async () => {
  await countVersionError()
  expect(await counted()).toBe(1)
  expect(await versionErrorsSince('9.9.9', now() - minute)).toBe(0)
})

test('failures of many minutes are counted from the minute that is asked for', async () => {
  for (const _ of [1, 2, 3]) {
    await countVersionError()
    shiftClock(minute)
  }
  expect(await versionErrorsSince(version, now() - 2 * minute)).toBe(2)
  expect(await versionErrorsSince(version, now() - 9 * minute)).toBe(3)
})

test('many failures at once are one write, and none of them is lost', async () => {
  const calls = await countStoreCalls(() => Promise.all(Array.from({ length: 50 }, countVersionError)))
  expect(calls).toBe(1)
  await waitFor('what was left over is counted', async () => (await counted()) === 50)
})

test('a failure that could not be counted is counted with the next one, and nobody is kept from anything', async () => {
  {
    using _ = onStoreCall({ before: () => Promise.reject(new Error('The store is away.')) })
    await countVersionError()
  }
  shiftClock(1000)
  await countVersionError()
  expect(await counted()).toBe(2)
})

const page = { method: 'get', access: 'public', tags: ['Test'], summary: 'Test' } as const
const responses = { 200: { description: 'Never', content: json(z.object({})) } } as const
const api = serve(
  route(createRoute({ ...page, path: '/broken', responses }), () => {
    throw new Error('a defect')
  }),
  route(createRoute({ ...page, path: '/away', responses }), () => {
    throw platformError('database_unavailable')
  }),
  route(createRoute({ ...page, path: '/fine', responses }), () => result(200, {})),
)

const record = (body: string) => ({ Records: [{ messageId: '1', body }] })

/** How many failures some work is counted as. */
async function failuresOf(work: () => Promise<unknown>): Promise<number> {
  await captureLog(() => work().catch(() => undefined))
  return counted()
}

test('an answer 500 counts; a refusal does not, nor does a store that is away', async () => {
  expect(await failuresOf(() => send(api, { target: '/away' }))).toBe(0)
  expect(await failuresOf(() => send(api, { target: '/nothing' }))).toBe(0)
  expect(await failuresOf(() => send(api, { target: '/fine' }))).toBe(0)
  expect(await failuresOf(() => send(api, { target: '/broken' }))).toBe(1)
})

test('a function that may not write answers its failures all the same, tries once in a second, and logs no more for it', async () => {
  let tries = 0
  const refuse = () => {
    tries++
    return Promise.reject(new Error('You are not authorized to perform dynamodb:UpdateItem.'))
  }
  const answers: unknown[] = []
  {
    using _ = onStoreCall({ before: refuse })
    const lines = await captureLog(async () => {
      for (let count = 0; count < 5; count++) answers.push((await send(api, { target: '/broken' })).status)
    })
    expect([lines.length, tries]).toEqual([5, 1])
  }
  expect(answers).toEqual(Array(5).fill(500))
  // They wait for a write that is allowed.
  shiftClock(1000)
  await countVersionError()
  expect(await counted()).toBe(6)
})

test('a message that fails counts, and one that is done does not', async () => {
  const handler = consume(z.object({ id: z.string() }), async () => undefined)
  expect(await failuresOf(() => handler(record('{"id":"a"}')))).toBe(0)
  expect(await failuresOf(() => handler(record('no json')))).toBe(1)
})

test('a scheduled run that fails counts, and one that succeeds does not', async () => {
  expect(await failuresOf(() => scheduled('sweep', async () => undefined)())).toBe(0)
  expect(await failuresOf(() => scheduled('sweep', () => Promise.reject(new Error('no luck')))())).toBe(1)
})

test('a scheduled run that fails says that it has been counted', async () => {
  const failure = new Error('no luck')
  await failuresOf(() => scheduled('sweep', () => Promise.reject(failure))())
  expect(isCounted(failure)).toBe(true)
  expect(isCounted(new Error('other'))).toBe(false)
})
