// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver, type Receiver } from '../support/receivers.ts'
import { type EventOf } from '@platform/contract/event'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { failureLimit } from '@platform/core/webhooks/delivery-outcome'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, test } from 'vitest'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { deliveriesOf, newEvent, publishEvents, advanceClock, subscribe } from '../support/webhooks.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(() => bootstrapPlatform())

/** Refuses what tells of one of these events. */
const refuse = (receiver: Receiver, status: number, ...refused: EventOf[]) => {
  receiver.respond = (_, response) => {
    const isRefused = refused.some(({ subject }) => receiver.requests.at(-1)?.body.includes(subject))
    response.writeHead(isRefused ? status : 204).end()
  }
}

test.each([400, 401, 404, 422])('events that are refused with %d hold up no other', async (status) => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const refused = Array.from({ length: 12 }, () => newEvent())
  refuse(receiver, status, ...refused)
  await publishEvents(caller, ...refused, newEvent())
  await drainDeliveries(reference)
  expect((await deliveriesOf(caller, id)).map(({ status: each }) => each)).toEqual([
    'Delivered',
    ...refused.map(() => 'Pending'),
  ])
  // Each has its own schedule: nothing is tried again at once.
  expect(receiver.requests).toHaveLength(13)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: true, failureCount: 0 })
})

test.each([408, 429, 500])('after an answer %d the receiver is left alone', async (status) => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.respondWith(status)
  await publishEvents(caller, newEvent(), newEvent())
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
})

test('a refused event does not lengthen the quiet that a failure brings', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const refused = Array.from({ length: 6 }, () => newEvent())
  receiver.respondWith(400)
  await publishEvents(caller, ...refused)
  await drainDeliveries(reference)
  receiver.respondWith(503)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(7)
  receiver.respondWith(204)
  advanceClock(12_500)
  await drainDeliveries(reference)
  expect(receiver.requests.length).toBeGreaterThan(7)
})

test('nineteen refusals and a success switch nothing off; twenty refusals in a row do', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const standing = async () => (await Webhook.list(caller)).items[0]
  receiver.respondWith(400)
  await publishEvents(caller, ...Array.from({ length: failureLimit - 1 }, () => newEvent()))
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: true, failureCount: failureLimit - 1 })

  receiver.respondWith(204)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: true, failureCount: 0 })

  receiver.respondWith(400)
  await publishEvents(caller, ...Array.from({ length: failureLimit + 5 }, () => newEvent()))
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: false, failureCount: failureLimit })
})

test('a receiver that answers 410 is gone: its webhook is switched off at once and tells so', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { id, reference } = await subscribe(caller, receiver)
  receiver.respondWith(410)
  await publishEvents(caller, newEvent(), newEvent())
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: false, disabledAt: expect.any(String) })
  expect((await pendingRecords(caller.organisationId)).map(({ events, audit }) => [audit, events[0]?.name])).toEqual([
    [{ action: 'webhook.disable', resource: id, detail: 'answered 410 Gone' }, 'webhook.disabled'],
  ])
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).toEqual(['Pending', 'Pending'])
})

test('when a quiet time ends fresh events go before those that have failed', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const [failed, fresh] = [newEvent(), newEvent()]
  receiver.respondWith(503)
  await publishEvents(caller, failed)
  await drainDeliveries(reference)
  advanceClock(20_000)
  await publishEvents(caller, fresh)
  receiver.respondWith(204)
  await drainDeliveries(reference)
  expect(receiver.requests.map(({ body }) => JSON.parse(body).subject)).toEqual([
    failed.subject,
    fresh.subject,
    failed.subject,
  ])
})
