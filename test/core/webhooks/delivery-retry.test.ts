// First: it sets settings that core reads when it is imported.
import { unreachableReceiver, newReceiver, type Receiver } from '../support/receivers.ts'
import { now } from '@platform/core/clock'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { failureLimit, jitterShare, retrySeconds } from '@platform/core/webhooks/delivery-outcome'
import { sweep } from '@platform/core/background/sweep'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, test } from 'vitest'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import {
  webhooksEnqueuedBy,
  deliveriesOf,
  newEvent,
  publishEvents,
  advanceClock,
  subscribe,
  verifyDelivery,
} from '../support/webhooks.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(() => bootstrapPlatform())

const hour = 3_600_000

test('retries follow the schedule, signed afresh under the same id, and end after a day', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  receiver.respondWith(500)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const shares: number[] = []
  let waitedMs = 0
  for (const [index, seconds] of retrySeconds.entries()) {
    const [delivery] = await deliveriesOf(caller, id)
    expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', index + 1])
    const { at = '', durationMs = 0 } = delivery?.attempts.at(-1) ?? {}
    const nextAttemptAt = delivery?.nextAttemptAt ?? ''
    // Between the end of the attempt and its record lie some milliseconds.
    const waitMs = Date.parse(nextAttemptAt) - Date.parse(at) - durationMs
    expect(waitMs).toBeGreaterThanOrEqual(seconds * (1 - jitterShare) * 1000 - 1)
    expect(waitMs).toBeLessThanOrEqual(seconds * (1 + jitterShare) * 1000 + 500)
    shares.push(waitMs / seconds / 1000)
    waitedMs += waitMs
    advanceClock(Date.parse(nextAttemptAt) - now() - 2000)
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(index + 1)
    advanceClock(2000)
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(index + 2)
  }
  expect(new Set(shares.map((share) => share.toFixed(2))).size).toBeGreaterThan(1)
  expect(waitedMs / hour).toBeGreaterThan(24 * (1 - jitterShare) - 1)
  expect(waitedMs / hour).toBeLessThan(24 * (1 + jitterShare))
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.nextAttemptAt]).toEqual(['Failed', undefined])
  expect(delivery?.attempts.map(({ error, statusCode }) => [error, statusCode])).toEqual(
    receiver.requests.map(() => ['unsuccessful_status', 500]),
  )
  advanceClock(48 * hour)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(8)

  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(new Set(receiver.requests.map(({ body }) => body)).size).toBe(1)
  const stamps = receiver.requests.map(({ headers }) => Number(headers['webhook-timestamp']))
  expect(stamps).toEqual(stamps.toSorted((a, b) => a - b))
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-signature'])).size).toBe(8)
  for (const [index, got] of receiver.requests.entries()) verifyDelivery(secret, got, (stamps[index] ?? 0) * 1000)
  expect(Math.abs((stamps[7] ?? 0) - (now() / 1000 - 48 * 3600))).toBeLessThan(10)
})

test.each([
  ['an error', (receiver: Receiver) => receiver.respondWith(404), 'unsuccessful_status', 404],
  [
    'a redirect to where it must not lead',
    (receiver: Receiver) => receiver.respondWith(307, { location: unreachableReceiver.url }),
    'redirected',
    307,
  ],
  [
    'nothing, and hangs up',
    (receiver: Receiver) => (receiver.respond = (request) => void request.socket.destroy()),
    'connection_failed',
    undefined,
  ],
])('a receiver that answers with %s has not got it', async (_, prepare, error, statusCode) => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  prepare(receiver)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', 1])
  expect(delivery?.attempts[0]).toMatchObject({ error, ...(statusCode && { statusCode }) })
  expect(unreachableReceiver.requests).toEqual([])
})

test('an answer without end is read to its cap, and is a success when it says so', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.respond = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(65_536)), 1)
    response.on('close', () => clearInterval(timer))
  }
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).toEqual(['Delivered'])
})

test('many deliveries that wait do not hammer a receiver that fails', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.respondWith(503)
  await publishEvents(caller, ...Array.from({ length: 15 }, () => newEvent()))
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
  advanceClock(12_500)
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  // A minute's worth of quiet: the second failure in a row.
  advanceClock(12_500)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(await webhooksEnqueuedBy(() => publishEvents(caller, newEvent()))).toEqual([])
  receiver.respondWith(200)
  advanceClock(72_000)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(18)
})

test('twenty failures in a row switch a webhook off and tell so; what waits goes out when it is on again', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { id, reference, url } = await subscribe(caller, receiver)
  receiver.respondWith(500)
  await publishEvents(caller, newEvent(), newEvent(), newEvent(), newEvent())
  for (let failure = 1; failure < failureLimit; failure++) {
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(failure)
    expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: true, failureCount: failure })
    advanceClock(15 * hour)
  }
  expect(await pendingRecords(caller.organisationId)).toEqual([])
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({
    enabled: false,
    failureCount: failureLimit,
    disabledAt: expect.any(String),
  })
  expect((await pendingRecords(caller.organisationId)).map(({ events, audit }) => [audit?.action, events])).toEqual([
    [
      'webhook.disable',
      [
        {
          id: expect.any(String),
          name: 'webhook.disabled',
          subject: id,
          data: { webhookId: id, url: new URL(url).origin, createdBy: caller.userId },
        },
      ],
    ],
  ])
  advanceClock(15 * hour)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(failureLimit)
  expect(await webhooksEnqueuedBy(sweep)).not.toContain(id)

  const waiting = (await deliveriesOf(caller, id)).filter(({ status }) => status === 'Pending')
  expect(waiting.length).toBeGreaterThan(0)
  receiver.respondWith(200)
  // Whoever made the webhook was signed out long ago.
  const again = await newCaller(caller.organisationId)
  expect(await webhooksEnqueuedBy(() => Webhook.change(again, id, { enabled: true }))).toEqual([id])
  const [changed] = (await Webhook.list(again)).items
  expect([changed?.enabled, changed?.failureCount, changed?.disabledAt]).toEqual([true, 0, undefined])
  await drainDeliveries(reference)
  const after = await deliveriesOf(caller, id)
  expect(after.filter(({ status }) => status === 'Pending')).toEqual([])
  expect(receiver.requests).toHaveLength(failureLimit + waiting.length)
})

test('a success ends the count of failures', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.respondWith(500)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(1)
  receiver.respondWith(200)
  advanceClock(13_000)
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(0)
})

test('a failed event does not hold up those behind it', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const [poison, ...others] = [newEvent(), newEvent(), newEvent()]
  receiver.respond = (_, response) => {
    const isPoison = receiver.requests.at(-1)?.body.includes(poison.subject)
    response.writeHead(isPoison ? 500 : 200).end()
  }
  await publishEvents(caller, poison, ...others)
  await drainDeliveries(reference)
  advanceClock(12_500)
  await drainDeliveries(reference)
  const statuses = (await deliveriesOf(caller, id)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual(['Delivered', 'Delivered', 'Pending'])
})
