// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver } from '../support/receivers.ts'
import { runProjections } from '@platform/core/outbox/run-projections'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import { sweep } from '@platform/core/background/sweep'
import * as Webhook from '@platform/core/webhooks/webhook'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { beforeAll, expect, test } from 'vitest'
import { refusalBy } from '../../support/asked.ts'
import { callerOf, refusalOf, started } from '../../support/world.ts'
import { announcedWhile, deliveriesOf, eventOf, happen, pass, subscribe, verified } from '../support/webhooks.ts'

beforeAll(() => started())

const hour = 3_600_000

test('a delivery can be made again, whatever became of it, with the same body and id', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  const [delivered] = await deliveriesOf(caller, id)
  const again = await Delivery.redeliver(caller, id, delivered?.id ?? '')
  expect([again.id, again.status, again.attempts.length]).toEqual([delivered?.id, 'Pending', 1])
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(2)
  expect(new Set(receiver.got.map(({ body, headers }) => [headers['webhook-id'], body].join(' '))).size).toBe(1)
  for (const got of receiver.got) verified(secret, got)
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts.length])).toEqual([
    ['Delivered', 2],
  ])
})

test('one that waits for its retry goes out at once when it is asked for, and once', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  receiver.answerWith(200)
  const [pending] = await deliveriesOf(caller, id)
  await Delivery.redeliver(caller, id, pending?.id ?? '')
  await drainDeliveries(reference)
  pass(24 * hour)
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(2)
})

test('a test goes to its webhook alone, whatever that has subscribed to', async () => {
  const [caller, receiver, bystander] = [await callerOf(), newReceiver(), newReceiver()]
  const tested = await subscribe(caller, receiver, ['platform.job.failed'])
  const other = await subscribe(caller, bystander, ['*'])
  const delivery = await Delivery.test(caller, tested.id)
  expect(delivery).toMatchObject({ status: 'Pending', eventType: 'platform.webhook.tested', attempts: [] })
  await runProjections(caller.organisationId, [webhookProjection])
  await Promise.all([drainDeliveries(tested.reference), drainDeliveries(other.reference)])
  expect(receiver.got.map((got) => verified(tested.secret, got))).toEqual([
    expect.objectContaining({ id: delivery.eventId, type: 'platform.webhook.tested', data: { webhookId: tested.id } }),
  ])
  expect(bystander.got).toEqual([])
})

test('what waits for a webhook that is removed is not delivered', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf(), eventOf())
  await Webhook.remove(caller, id)
  expect(await announcedWhile(() => drainDeliveries(reference))).toEqual([])
  pass(hour)
  expect(await announcedWhile(sweep)).not.toContain(id)
  await drainDeliveries(reference)
  expect(receiver.got).toEqual([])
  expect(await refusalOf(deliveriesOf(caller, id))).toBe('webhook_not_found')
})

test('a webhook that is removed while it is delivered to gets nothing more', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf(), eventOf())
  receiver.answer = (_, response) => void Webhook.remove(caller, id).then(() => response.writeHead(200).end())
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(1)
})

test('a foreign, unknown or forgotten delivery cannot be made again; nor can one of a webhook that is off', async () => {
  const [caller, other, receiver] = [await callerOf(), await callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf())
  await drainDeliveries(reference)
  const deliveryId = (await deliveriesOf(caller, id))[0]?.id ?? ''
  expect(await refusalOf(Delivery.redeliver(other, id, deliveryId))).toBe('webhook_not_found')
  expect(await refusalOf(Delivery.redeliver(caller, id, 'dlv_x'))).toBe('delivery_not_found')
  await Webhook.change(caller, id, { enabled: false })
  expect(await refusalOf(Delivery.redeliver(caller, id, deliveryId))).toBe('webhook_disabled')
  const again = `POST /api/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`
  expect(await refusalBy('webhooks', again, [caller, 'OrgAdmin'])).toBe('webhook_disabled')
  expect(await refusalOf(Delivery.test(caller, id))).toBe('webhook_disabled')
  await Webhook.change(caller, id, { enabled: true })
  pass(31 * 24 * hour)
  expect(await deliveriesOf(caller, id)).toEqual([])
  expect(await refusalOf(Delivery.redeliver(caller, id, deliveryId))).toBe('delivery_not_found')
})
