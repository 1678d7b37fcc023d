// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver, type Receiver } from '../support/receivers.ts'
import { type EventOf } from '@platform/contract/event'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { failureLimit } from '@platform/core/webhooks/delivery-outcome'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, test } from 'vitest'
import { callerOf, started } from '../../support/world.ts'
import { deliveriesOf, eventOf, happen, pass, subscribe } from '../support/webhooks.ts'
import { waitingRecords } from '../support/books.ts'

beforeAll(() => started())

/** Refuses what tells of one of these events. */
const refuse = (receiver: Receiver, status: number, ...refused: EventOf[]) => {
  receiver.answer = (_, response) => {
    const isRefused = refused.some(({ subject }) => receiver.got.at(-1)?.body.includes(subject))
    response.writeHead(isRefused ? status : 204).end()
  }
}

test.each([400, 401, 404, 422])('events that are refused with %d hold up no other', async (status) => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const refused = Array.from({ length: 12 }, () => eventOf())
  refuse(receiver, status, ...refused)
  await happen(caller, ...refused, eventOf())
  await drainDeliveries(reference)
  expect((await deliveriesOf(caller, id)).map(({ status: each }) => each)).toEqual([
    'Delivered',
    ...refused.map(() => 'Pending'),
  ])
  // Each has its own schedule: nothing is tried again at once.
  expect(receiver.got).toHaveLength(13)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: true, failureCount: 0 })
})

test.each([408, 429, 500])('after an answer %d the receiver is left alone', async (status) => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.answerWith(status)
  await happen(caller, eventOf(), eventOf())
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(1)
})

test('a refused event does not lengthen the quiet that a failure brings', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const refused = Array.from({ length: 6 }, () => eventOf())
  receiver.answerWith(400)
  await happen(caller, ...refused)
  await drainDeliveries(reference)
  receiver.answerWith(503)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(7)
  receiver.answerWith(204)
  pass(12_500)
  await drainDeliveries(reference)
  expect(receiver.got.length).toBeGreaterThan(7)
})

test('nineteen refusals and a success switch nothing off; twenty refusals in a row do', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const standing = async () => (await Webhook.list(caller)).items[0]
  receiver.answerWith(400)
  await happen(caller, ...Array.from({ length: failureLimit - 1 }, () => eventOf()))
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: true, failureCount: failureLimit - 1 })

  receiver.answerWith(204)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: true, failureCount: 0 })

  receiver.answerWith(400)
  await happen(caller, ...Array.from({ length: failureLimit + 5 }, () => eventOf()))
  await drainDeliveries(reference)
  expect(await standing()).toMatchObject({ enabled: false, failureCount: failureLimit })
})

test('a receiver that answers 410 is gone: its webhook is switched off at once and tells so', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { id, reference } = await subscribe(caller, receiver)
  receiver.answerWith(410)
  await happen(caller, eventOf(), eventOf())
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(1)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: false, disabledAt: expect.any(String) })
  expect((await waitingRecords(caller.organisationId)).map(({ events, audit }) => [audit, events[0]?.name])).toEqual([
    [{ action: 'webhook.disable', resource: id, detail: 'answered 410 Gone' }, 'webhook.disabled'],
  ])
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).toEqual(['Pending', 'Pending'])
})

test('when a quiet time ends fresh events go before those that have failed', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  const [failed, fresh] = [eventOf(), eventOf()]
  receiver.answerWith(503)
  await happen(caller, failed)
  await drainDeliveries(reference)
  pass(20_000)
  await happen(caller, fresh)
  receiver.answerWith(204)
  await drainDeliveries(reference)
  expect(receiver.got.map(({ body }) => JSON.parse(body).subject)).toEqual([
    failed.subject,
    fresh.subject,
    failed.subject,
  ])
})
