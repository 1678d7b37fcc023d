// First: it sets what the platform may reach, which core reads when it is imported.
import { forbiddenReceiver, newReceiver, type Receiver } from '../support/receivers.ts'
import { now } from '@platform/core/clock'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { failureLimit, jitterShare, retrySeconds } from '@platform/core/webhooks/delivery-outcome'
import { sweep } from '@platform/core/background/sweep'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, test } from 'vitest'
import { callerOf, started } from '../../support/world.ts'
import { announcedWhile, deliveriesOf, eventOf, happen, pass, subscribe, verified } from '../support/webhooks.ts'
import { waitingRecords } from '../support/books.ts'

beforeAll(() => started())

const hour = 3_600_000

test('retries follow the schedule, signed afresh under the same id, and end after a day', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
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
    pass(Date.parse(nextAttemptAt) - now() - 2000)
    await drainDeliveries(reference)
    expect(receiver.got).toHaveLength(index + 1)
    pass(2000)
    await drainDeliveries(reference)
    expect(receiver.got).toHaveLength(index + 2)
  }
  expect(new Set(shares.map((share) => share.toFixed(2))).size).toBeGreaterThan(1)
  expect(waitedMs / hour).toBeGreaterThan(24 * (1 - jitterShare) - 1)
  expect(waitedMs / hour).toBeLessThan(24 * (1 + jitterShare))
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.nextAttemptAt]).toEqual(['Failed', undefined])
  expect(delivery?.attempts.map(({ error, statusCode }) => [error, statusCode])).toEqual(
    receiver.got.map(() => ['unsuccessful_status', 500]),
  )
  pass(48 * hour)
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(8)

  expect(new Set(receiver.got.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(new Set(receiver.got.map(({ body }) => body)).size).toBe(1)
  const stamps = receiver.got.map(({ headers }) => Number(headers['webhook-timestamp']))
  expect(stamps).toEqual(stamps.toSorted((a, b) => a - b))
  expect(new Set(receiver.got.map(({ headers }) => headers['webhook-signature'])).size).toBe(8)
  for (const [index, got] of receiver.got.entries()) verified(secret, got, (stamps[index] ?? 0) * 1000)
  expect(Math.abs((stamps[7] ?? 0) - (now() / 1000 - 48 * 3600))).toBeLessThan(10)
})

test.each([
  ['an error', (receiver: Receiver) => receiver.answerWith(404), 'unsuccessful_status', 404],
  [
    'a redirect to where it must not lead',
    (receiver: Receiver) => receiver.answerWith(307, { location: forbiddenReceiver.url }),
    'redirected',
    307,
  ],
  [
    'nothing, and hangs up',
    (receiver: Receiver) => (receiver.answer = (request) => void request.socket.destroy()),
    'connection_failed',
    undefined,
  ],
])('a receiver that answers with %s has not got it', async (_, prepare, error, statusCode) => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  prepare(receiver)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', 1])
  expect(delivery?.attempts[0]).toMatchObject({ error, ...(statusCode && { statusCode }) })
  expect(forbiddenReceiver.got).toEqual([])
})

test('an answer without end is read to its cap, and is a success when it says so', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.answer = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(65_536)), 1)
    response.on('close', () => clearInterval(timer))
  }
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).toEqual(['Delivered'])
})

test('many deliveries that wait do not hammer a receiver that fails', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.answerWith(503)
  await happen(caller, ...Array.from({ length: 15 }, () => eventOf()))
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(1)
  pass(12_500)
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(2)
  // A minute's worth of quiet: the second failure in a row.
  pass(12_500)
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(2)
  expect(await announcedWhile(() => happen(caller, eventOf()))).toEqual([])
  receiver.answerWith(200)
  pass(72_000)
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(18)
})

test('twenty failures in a row switch a webhook off and tell so; what waits goes out when it is on again', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { id, reference, url } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf(), eventOf(), eventOf(), eventOf())
  for (let failure = 1; failure < failureLimit; failure++) {
    await drainDeliveries(reference)
    expect(receiver.got).toHaveLength(failure)
    expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: true, failureCount: failure })
    pass(15 * hour)
  }
  expect(await waitingRecords(caller.organisationId)).toEqual([])
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({
    enabled: false,
    failureCount: failureLimit,
    disabledAt: expect.any(String),
  })
  expect((await waitingRecords(caller.organisationId)).map(({ events, audit }) => [audit?.action, events])).toEqual([
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
  pass(15 * hour)
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(failureLimit)
  expect(await announcedWhile(sweep)).not.toContain(id)

  const waiting = (await deliveriesOf(caller, id)).filter(({ status }) => status === 'Pending')
  expect(waiting.length).toBeGreaterThan(0)
  receiver.answerWith(200)
  // Whoever made the webhook was signed out long ago.
  const again = await callerOf(caller.organisationId)
  expect(await announcedWhile(() => Webhook.change(again, id, { enabled: true }))).toEqual([id])
  const [changed] = (await Webhook.list(again)).items
  expect([changed?.enabled, changed?.failureCount, changed?.disabledAt]).toEqual([true, 0, undefined])
  await drainDeliveries(reference)
  const after = await deliveriesOf(caller, id)
  expect(after.filter(({ status }) => status === 'Pending')).toEqual([])
  expect(receiver.got).toHaveLength(failureLimit + waiting.length)
})

test('a success ends the count of failures', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(1)
  receiver.answerWith(200)
  pass(13_000)
  await drainDeliveries(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(0)
})

test('a failed event does not hold up those behind it', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const [poison, ...others] = [eventOf(), eventOf(), eventOf()]
  receiver.answer = (_, response) => {
    const isPoison = receiver.got.at(-1)?.body.includes(poison.subject)
    response.writeHead(isPoison ? 500 : 200).end()
  }
  await happen(caller, poison, ...others)
  await drainDeliveries(reference)
  pass(12_500)
  await drainDeliveries(reference)
  const statuses = (await deliveriesOf(caller, id)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual(['Delivered', 'Delivered', 'Pending'])
})
