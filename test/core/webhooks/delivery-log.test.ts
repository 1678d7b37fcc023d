// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver } from '../support/receivers.ts'
import { runProjections } from '@platform/core/outbox/run-projections'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import { sweep } from '@platform/core/background/sweep'
import * as Webhook from '@platform/core/webhooks/webhook'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { beforeAll, expect, test } from 'vitest'
import { newCaller, requestErrorCode, errorCodeOf, bootstrapPlatform } from '../../support/fixtures.ts'
import {
  webhooksEnqueuedBy,
  deliveriesOf,
  newEvent,
  publishEvents,
  advanceClock,
  subscribe,
  verifyDelivery,
} from '../support/webhooks.ts'

beforeAll(() => bootstrapPlatform())

const hour = 3_600_000

test('a delivery can be made again, whatever became of it, with the same body and id', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const [delivered] = await deliveriesOf(caller, id)
  const again = await Delivery.redeliver(caller, id, delivered?.id ?? '')
  expect([again.id, again.status, again.attempts.length]).toEqual([delivered?.id, 'Pending', 1])
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(new Set(receiver.requests.map(({ body, headers }) => [headers['webhook-id'], body].join(' '))).size).toBe(1)
  for (const got of receiver.requests) verifyDelivery(secret, got)
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts.length])).toEqual([
    ['Delivered', 2],
  ])
})

test('one that waits for its retry goes out at once when it is asked for, and once', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.respondWith(500)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  receiver.respondWith(200)
  const [pending] = await deliveriesOf(caller, id)
  await Delivery.redeliver(caller, id, pending?.id ?? '')
  await drainDeliveries(reference)
  advanceClock(24 * hour)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
})

test('a test goes to its webhook alone, whatever that has subscribed to', async () => {
  const [caller, receiver, bystander] = [await newCaller(), newReceiver(), newReceiver()]
  const tested = await subscribe(caller, receiver, ['platform.job.failed'])
  const other = await subscribe(caller, bystander, ['*'])
  const delivery = await Delivery.test(caller, tested.id)
  expect(delivery).toMatchObject({ status: 'Pending', eventType: 'platform.webhook.tested', attempts: [] })
  await runProjections(caller.organisationId, [webhookProjection])
  await Promise.all([drainDeliveries(tested.reference), drainDeliveries(other.reference)])
  expect(receiver.requests.map((got) => verifyDelivery(tested.secret, got))).toEqual([
    expect.objectContaining({ id: delivery.eventId, type: 'platform.webhook.tested', data: { webhookId: tested.id } }),
  ])
  expect(bystander.requests).toEqual([])
})

test('what waits for a webhook that is removed is not delivered', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent(), newEvent())
  await Webhook.remove(caller, id)
  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([])
  advanceClock(hour)
  expect(await webhooksEnqueuedBy(sweep)).not.toContain(id)
  await drainDeliveries(reference)
  expect(receiver.requests).toEqual([])
  expect(await errorCodeOf(deliveriesOf(caller, id))).toBe('webhook_not_found')
})

test('a webhook that is removed while it is delivered to gets nothing more', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent(), newEvent())
  receiver.respond = (_, response) => void Webhook.remove(caller, id).then(() => response.writeHead(200).end())
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
})

test('a foreign, unknown or forgotten delivery cannot be made again; nor can one of a webhook that is off', async () => {
  const [caller, other, receiver] = [await newCaller(), await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const deliveryId = (await deliveriesOf(caller, id))[0]?.id ?? ''
  expect(await errorCodeOf(Delivery.redeliver(other, id, deliveryId))).toBe('webhook_not_found')
  expect(await errorCodeOf(Delivery.redeliver(caller, id, 'dlv_x'))).toBe('delivery_not_found')
  await Webhook.change(caller, id, { enabled: false })
  expect(await errorCodeOf(Delivery.redeliver(caller, id, deliveryId))).toBe('webhook_disabled')
  const again = `POST /api/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`
  expect(await requestErrorCode('webhooks', again, [caller, 'OrgAdmin'])).toBe('webhook_disabled')
  expect(await errorCodeOf(Delivery.test(caller, id))).toBe('webhook_disabled')
  await Webhook.change(caller, id, { enabled: true })
  advanceClock(31 * 24 * hour)
  expect(await deliveriesOf(caller, id)).toEqual([])
  expect(await errorCodeOf(Delivery.redeliver(caller, id, deliveryId))).toBe('delivery_not_found')
})
