// First: it sets what the platform may reach, which core reads when it is imported.
import { unreachableReceiver, newReceiver } from '../support/receivers.ts'
import { CloudEvent } from '@platform/contract/event'
import { runProjections } from '@platform/core/outbox/run-projections'
import { commit } from '@platform/core/outbox/commit'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import { sweep } from '@platform/core/background/sweep'
import * as Webhook from '@platform/core/webhooks/webhook'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { beforeAll, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { handler } from '../../../functions/queue/webhooks.ts'
import { fastTimers } from '../../support/fast-timers.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'
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

test('a receiver verifies every delivery with the reference implementation', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  const events = [newEvent(), newEvent('job.completed'), newEvent()]
  await publishEvents(caller, ...events)
  await drainDeliveries(reference)

  const received = receiver.requests.map((got) => CloudEvent.parse(verifyDelivery(secret, got)))
  expect(received.map(({ type, subject, data }) => ({ name: type, subject, data }))).toEqual(
    events.map(({ name, subject, data }) => ({ name: `platform.${name}`, subject, data })),
  )
  expect(received.map(({ source }) => source)).toEqual(events.map(() => `/organisations/${caller.organisationId}`))
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(received.map((event) => event.id))
  for (const { headers } of receiver.requests) {
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Platform\//),
    })
  }
  const shown = await deliveriesOf(caller, id)
  expect(shown.map(({ eventId }) => eventId)).toEqual(received.map((event) => event.id).toReversed())
  for (const { status, attempts, nextAttemptAt } of shown) {
    expect([status, attempts, nextAttemptAt]).toEqual([
      'Delivered',
      [{ at: expect.any(String), statusCode: 204, durationMs: expect.any(Number) }],
      undefined,
    ])
  }
})

test('with another secret, a changed body or another id nothing verifies', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const mine = await subscribe(caller, receiver, ['platform.cluster.*'])
  const other = await subscribe(caller, receiver, ['platform.job.*'])
  await publishEvents(caller, newEvent())
  await drainDeliveries(mine.reference)
  const [got] = receiver.requests
  if (got === undefined) throw new Error('Nothing was delivered.')
  expect(() => verifyDelivery(mine.secret, got)).not.toThrow()
  expect(() => verifyDelivery(other.secret, got)).toThrow()
  expect(() => verifyDelivery(mine.secret, { ...got, body: `${got.body} ` })).toThrow()
  expect(() => verifyDelivery(mine.secret, { ...got, headers: { ...got.headers, 'webhook-id': 'evt_x' } })).toThrow()
  expect(() => verifyDelivery(mine.secret, got, now() + 6 * 60_000)).toThrow('too old')
})

test('a webhook gets what it has subscribed to: everything, an area, or single events', async () => {
  const caller = await newCaller()
  const wanted = [
    ['*'],
    ['platform.job.*'],
    ['platform.cluster.deleted'],
    ['platform.cluster.*', 'platform.job.completed'],
  ]
  const hooks = await Promise.all(
    wanted.map(async (events) => {
      const receiver = newReceiver()
      return { receiver, hook: await subscribe(caller, receiver, events) }
    }),
  )
  await publishEvents(caller, newEvent('cluster.deleted'), newEvent('job.completed'))
  await Promise.all(hooks.map(({ hook }) => drainDeliveries(hook.reference)))
  expect(hooks.map(({ receiver }) => receiver.requests.map(({ body }) => JSON.parse(body).type))).toEqual([
    ['platform.cluster.deleted', 'platform.job.completed'],
    ['platform.job.completed'],
    ['platform.cluster.deleted'],
    ['platform.cluster.deleted', 'platform.job.completed'],
  ])
})

test('what happens in an organisation is told to nobody else, and to no webhook that is switched off', async () => {
  const [mine, other, receiver] = [await newCaller(), await newCaller(), newReceiver()]
  const foreign = await subscribe(other, receiver)
  const off = await subscribe(mine, receiver)
  await Webhook.change(mine, off.id, { enabled: false })
  await publishEvents(mine, newEvent())
  await Promise.all([drainDeliveries(foreign.reference), drainDeliveries(off.reference)])
  expect(receiver.requests).toEqual([])
  expect(await deliveriesOf(mine, off.id)).toEqual([])
})

test('events that are booked again and again, messages that come many times: one delivery of each', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  for (const event of [newEvent(), newEvent(), newEvent()]) await commit(caller, { writes: [], events: [event] })
  const records = (await pendingRecords(caller.organisationId)).filter(({ events }) => events.length > 0)
  const prepare = () => webhookProjection.beforeCommit?.(caller.organisationId, records)
  await Promise.all([prepare(), prepare(), prepare()])
  await Promise.all(Array.from({ length: 6 }, () => drainDeliveries(reference)))
  // As it is after a kill between preparing and closing.
  await prepare()
  await Promise.all(Array.from({ length: 4 }, () => runProjections(caller.organisationId, [webhookProjection])))
  await Promise.all(Array.from({ length: 6 }, () => drainDeliveries(reference)))
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(
    records.flatMap(({ events }) => events.map((event) => event.id)),
  )
  const shown = await deliveriesOf(caller, id)
  expect(shown.map(({ status, attempts }) => [status, attempts.length])).toEqual(shown.map(() => ['Delivered', 1]))
})

test('a hundred events of one closing are delivered, each once', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await commit(caller, { writes: [], events: Array.from({ length: 100 }, () => newEvent()) })
  await runProjections(caller.organisationId, [webhookProjection])
  // A turn of work ends after a while, and the next message goes on.
  for (let turn = 0; turn < 20 && receiver.requests.length < 100; turn++) await drainDeliveries(reference)
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(100)
  expect(receiver.requests).toHaveLength(100)
  const last = await Delivery.list(caller, id, { page: 4, pageSize: 30 })
  expect([last.items.length, last.totalCount]).toEqual([10, 100])
})

test('a closing announces each webhook once, the sweep what was lost', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const [first, second] = [await subscribe(caller, receiver), await subscribe(caller, receiver)]
  const both = [first.id, second.id].toSorted()
  const announced = async (work: () => Promise<unknown>) =>
    (await webhooksEnqueuedBy(work)).filter((id) => both.includes(id)).toSorted()
  expect(await announced(() => publishEvents(caller, newEvent(), newEvent(), newEvent()))).toEqual(both)
  expect(await announced(sweep)).toEqual([])
  advanceClock(60_000)
  expect(await announced(sweep)).toEqual(both)
  await Promise.all([drainDeliveries(first.reference), drainDeliveries(second.reference)])
  expect(receiver.requests).toHaveLength(6)
  advanceClock(60_000)
  expect(await announced(sweep)).toEqual([])
})

test('a private address that its name hides is not reached, and the log says so', async () => {
  const caller = await newCaller()
  const port = unreachableReceiver.host.split(':')[1]
  const webhook = await Webhook.create(caller, { url: `http://localhost:${port}/`, events: ['*'] })
  await publishEvents(caller, newEvent())
  await drainDeliveries({ organisationId: caller.organisationId, webhookId: webhook.id })
  const [delivery] = await deliveriesOf(caller, webhook.id)
  expect(['address_not_allowed', 'name_not_resolved']).toContain(delivery?.attempts[0]?.error)
  expect(unreachableReceiver.requests).toEqual([])
})

test('a receiver that hangs keeps nobody else waiting, and is given up after ten seconds', async () => {
  using patience = fastTimers(10_000)
  const [slow, quick] = [await newCaller(), await newCaller()]
  const [hanging, healthy] = [newReceiver(), newReceiver()]
  const [stuck, fine] = [await subscribe(slow, hanging), await subscribe(quick, healthy)]
  hanging.respond = () => undefined
  await publishEvents(slow, newEvent(), newEvent())
  await publishEvents(quick, newEvent())
  const messages = [stuck.reference, fine.reference].map((body, index) => ({
    messageId: String(index),
    body: JSON.stringify(body),
  }))
  let isOver = false
  const work = handler({ Records: messages }).finally(() => (isOver = true))
  await waitFor('the healthy receiver has got its event', async () => healthy.requests.length === 1)
  expect([hanging.requests.length, isOver]).toEqual([1, false])
  // Another message does not wait in line behind the one that hangs.
  await drainDeliveries(stuck.reference)
  expect([hanging.requests.length, isOver]).toEqual([1, false])
  expect(await work).toEqual({ batchItemFailures: [] })
  const attempts = (await deliveriesOf(slow, stuck.id)).flatMap((delivery) => delivery.attempts)
  expect(attempts.map(({ error }) => error)).toEqual(['timed_out'])
  expect(attempts[0]?.durationMs).toBeGreaterThan(patience.ms - 100)
})

test('a worker that has used its time hands on, and the next message goes on where it stopped', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent(), newEvent(), newEvent())
  receiver.respond = (_, response) => {
    advanceClock(6000)
    response.writeHead(200).end()
  }
  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([id])
  expect(receiver.requests).toHaveLength(2)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(3)
})

test('what comes when a worker has seen that nothing is left is not left lying', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent())
  const pk = keys.pendingDeliveriesOf(caller.organisationId, id)
  let isLate = false
  using _ = onStoreCall({
    after: async ({ input }, { Items }) => {
      if (isLate || input.ExpressionAttributeValues?.[':pk'] !== pk || Items.length > 0) return
      isLate = true
      await publishEvents(caller, newEvent())
      // Its message comes while the first worker has the lease, and does nothing.
      await drainDeliveries(reference)
    },
  })
  await drainDeliveries(reference)
  expect(isLate).toBe(true)
  expect(receiver.requests).toHaveLength(2)
})
