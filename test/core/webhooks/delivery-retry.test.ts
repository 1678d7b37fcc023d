// First: sets PLAT_OUTBOUND_ALLOW before core reads it.
import { newReceiver, unreachableReceiver, type Receiver } from '../support/receivers.ts'
import type { EventOf } from '@platform/contract/event'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { failureLimit, jitterShare, retrySeconds } from '@platform/core/webhooks/delivery-outcome'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, newCaller } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import {
  deliveriesOf,
  newEvent,
  publishEvents,
  subscribe,
  verifyDelivery,
  webhooksEnqueuedBy,
} from '../support/webhooks.ts'

beforeAll(() => bootstrapPlatform())

const hourMs = 3_600_000
/** Longer than the first back-off with jitter. */
const firstBackOffMs = 12_500
const newEvents = (count: number) => Array.from({ length: count }, () => newEvent())

async function subscription(status: number) {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  receiver.respondWith(status)
  const webhook = await subscribe(caller, receiver)
  const publishAndDrain = async (...events: EventOf[]) => {
    await publishEvents(caller, ...events)
    await drainDeliveries(webhook.reference)
  }
  return { caller, receiver, publishAndDrain, ...webhook }
}

const firstWebhook = async (caller: Caller) => (await Webhook.list(caller)).items[0]
const statusesOf = async (caller: Caller, webhookId: string) =>
  (await deliveriesOf(caller, webhookId)).map(({ status }) => status)

test('retries on schedule with new signatures and the same id, and fails after a day', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { caller, receiver, secret, reference, id, publishAndDrain } = await subscription(500)
  await publishAndDrain(newEvent())
  const shares: number[] = []
  let totalMs = 0
  for (const [index, seconds] of retrySeconds.entries()) {
    const [delivery] = await deliveriesOf(caller, id)
    expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', index + 1])
    const { at = '' } = delivery?.attempts.at(-1) ?? {}
    const nextAttemptAt = delivery?.nextAttemptAt ?? ''
    const pauseMs = Date.parse(nextAttemptAt) - Date.parse(at)
    expect(pauseMs).toBeGreaterThanOrEqual(seconds * (1 - jitterShare) * 1000 - 1)
    expect(pauseMs).toBeLessThanOrEqual(seconds * (1 + jitterShare) * 1000 + 1)
    shares.push(pauseMs / seconds / 1000)
    totalMs += pauseMs
    advanceClock(Date.parse(nextAttemptAt) - now() - 2000)
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(index + 1)
    advanceClock(2000)
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(index + 2)
  }
  expect(new Set(shares.map((share) => share.toFixed(2))).size).toBeGreaterThan(1)
  expect(totalMs / hourMs).toBeGreaterThan(24 * (1 - jitterShare) - 1)
  expect(totalMs / hourMs).toBeLessThan(24 * (1 + jitterShare))
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.nextAttemptAt]).toEqual(['Failed', undefined])
  expect(delivery?.attempts.map(({ error, statusCode }) => [error, statusCode])).toEqual(
    receiver.requests.map(() => ['unsuccessful_status', 500]),
  )
  advanceClock(48 * hourMs)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(8)

  expect(new Set(receiver.requests.map(({ body, headers }) => [headers['webhook-id'], body].join())).size).toBe(1)
  const timestamps = receiver.requests.map(({ headers }) => Number(headers['webhook-timestamp']))
  expect(timestamps).toEqual(timestamps.toSorted((a, b) => a - b))
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-signature'])).size).toBe(8)
  expect(Math.abs((timestamps[7] ?? 0) - (now() / 1000 - 48 * 3600))).toBeLessThan(3)
  for (const [index, request] of receiver.requests.entries())
    verifyDelivery(secret, request, (timestamps[index] ?? 0) * 1000)
})

test.each([
  ['unsuccessful_status', 404, (receiver: Receiver) => receiver.respondWith(404)],
  ['redirected', 307, (receiver: Receiver) => receiver.respondWith(307, { location: unreachableReceiver.url })],
  [
    'connection_failed',
    undefined,
    (receiver: Receiver) => {
      receiver.respond = (request) => void request.socket.destroy()
    },
  ],
])('records the error %s', async (error, statusCode, prepare) => {
  const { caller, receiver, id, publishAndDrain } = await subscription(200)
  prepare(receiver)
  await publishAndDrain(newEvent())
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', 1])
  expect(delivery?.attempts[0]).toMatchObject({ error, ...(statusCode && { statusCode }) })
  expect(unreachableReceiver.requests).toEqual([])
})

test('reads an endless response up to its limit and accepts its status', async () => {
  const { caller, receiver, id, publishAndDrain } = await subscription(200)
  receiver.respond = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(65_536)), 1)
    response.on('close', () => clearInterval(timer))
  }
  await publishAndDrain(newEvent())
  expect(await statusesOf(caller, id)).toEqual(['Delivered'])
})

test('backs off from a failing receiver with growing pauses', async () => {
  const { caller, receiver, reference, publishAndDrain } = await subscription(503)
  await publishAndDrain(...newEvents(15))
  for (let message = 0; message < 4; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
  advanceClock(firstBackOffMs)
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  // The second back-off is a minute.
  advanceClock(firstBackOffMs)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(await webhooksEnqueuedBy(() => publishEvents(caller, newEvent()))).toEqual([])
  receiver.respondWith(200)
  advanceClock(72_000)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(18)
})

test.each([408, 429, 500])('backs off after status %d', async (status) => {
  const { receiver, publishAndDrain } = await subscription(status)
  await publishAndDrain(...newEvents(2))
  expect(receiver.requests).toHaveLength(1)
})

test('disables a webhook after twenty consecutive failures and delivers pending events once it is enabled', async () => {
  const { caller, receiver, id, reference, url } = await subscription(500)
  await publishEvents(caller, ...newEvents(4))
  for (let failure = 1; failure < failureLimit; failure++) {
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(failure)
    expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: failure })
    advanceClock(15 * hourMs)
  }
  expect(await pendingRecords(caller.organisationId)).toEqual([])
  await drainDeliveries(reference)
  const disabled = { enabled: false, failureCount: failureLimit, disabledAt: expect.any(String) }
  expect(await firstWebhook(caller)).toMatchObject(disabled)
  const data = { webhookId: id, url: new URL(url).origin, createdBy: caller.userId }
  expect((await pendingRecords(caller.organisationId)).map(({ events, audit }) => [audit?.action, events])).toEqual([
    ['webhook.disable', [{ id: expect.any(String), name: 'webhook.disabled', subject: id, data }]],
  ])
  advanceClock(15 * hourMs)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(failureLimit)
  expect(await webhooksEnqueuedBy(sweep)).not.toContain(id)

  const pendingCount = (await statusesOf(caller, id)).filter((status) => status === 'Pending').length
  expect(pendingCount).toBeGreaterThan(0)
  receiver.respondWith(200)
  // The session of the first caller has expired.
  const colleague = await newCaller(caller.organisationId)
  expect(await webhooksEnqueuedBy(() => Webhook.change(colleague, id, { enabled: true }))).toEqual([id])
  const enabled = await firstWebhook(colleague)
  expect([enabled?.enabled, enabled?.failureCount, enabled?.disabledAt]).toEqual([true, 0, undefined])
  await drainDeliveries(reference)
  expect(await statusesOf(caller, id)).not.toContain('Pending')
  expect(receiver.requests).toHaveLength(failureLimit + pendingCount)
})

test('rejected events count as failures, and a success resets the count', async () => {
  const { caller, receiver, publishAndDrain } = await subscription(400)
  await publishAndDrain(...newEvents(failureLimit - 1))
  expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: failureLimit - 1 })
  receiver.respondWith(204)
  await publishAndDrain(newEvent())
  expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: 0 })
  receiver.respondWith(400)
  await publishAndDrain(...newEvents(failureLimit + 5))
  expect(await firstWebhook(caller)).toMatchObject({ enabled: false, failureCount: failureLimit })
})

test('disables a webhook at once after status 410', async () => {
  const { caller, receiver, id, publishAndDrain } = await subscription(410)
  await publishAndDrain(...newEvents(2))
  expect(receiver.requests).toHaveLength(1)
  expect(await firstWebhook(caller)).toMatchObject({ enabled: false, disabledAt: expect.any(String) })
  expect((await pendingRecords(caller.organisationId)).map(({ events, audit }) => [audit, events[0]?.name])).toEqual([
    [{ action: 'webhook.disable', resource: id, detail: 'answered 410 Gone' }, 'webhook.disabled'],
  ])
  expect(await statusesOf(caller, id)).toEqual(['Pending', 'Pending'])
})

test.each([400, 401, 404, 422])('events rejected with status %d delay no other event', async (status) => {
  const { caller, receiver, id, publishAndDrain } = await subscription(204)
  const rejected = newEvents(12)
  receiver.respond = (_, response) => {
    const isRejected = rejected.some(({ subject }) => receiver.requests.at(-1)?.body.includes(subject))
    response.writeHead(isRejected ? status : 204).end()
  }
  await publishAndDrain(...rejected, newEvent())
  expect(await statusesOf(caller, id)).toEqual(['Delivered', ...rejected.map(() => 'Pending')])
  // Each has its own schedule: none is retried at once.
  expect(receiver.requests).toHaveLength(13)
  expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: 0 })
})

test('rejected events do not lengthen the back-off', async () => {
  const { receiver, reference, publishAndDrain } = await subscription(400)
  await publishAndDrain(...newEvents(6))
  receiver.respondWith(503)
  await publishAndDrain(newEvent())
  expect(receiver.requests).toHaveLength(7)
  receiver.respondWith(204)
  advanceClock(firstBackOffMs)
  await drainDeliveries(reference)
  expect(receiver.requests.length).toBeGreaterThan(7)
})

test('delivers new events before retries when a back-off ends', async () => {
  const { caller, receiver, reference, publishAndDrain } = await subscription(503)
  const [failed, fresh] = [newEvent(), newEvent()]
  await publishAndDrain(failed)
  advanceClock(20_000)
  await publishEvents(caller, fresh)
  receiver.respondWith(204)
  await drainDeliveries(reference)
  expect(receiver.requests.map(({ body }) => JSON.parse(body).subject)).toEqual(
    [failed, fresh, failed].map(({ subject }) => subject),
  )
})
