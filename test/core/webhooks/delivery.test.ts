// Imported first, because it sets `PLAT_WEBHOOK_ALLOW`, which core reads when it is imported.
import { newReceiver, type Receiver, unlistedReceiver } from '../support/receivers.ts'
import { CloudEvent, type EventOf } from '@platform/contract/event'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { commit } from '@platform/core/outbox/commit'
import { runProjections } from '@platform/core/outbox/run-projections'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import { failureLimit, jitterShare, retrySeconds } from '@platform/core/webhooks/delivery-outcome'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { webhookProjection } from '@platform/core/webhooks/projection'
import * as Webhook from '@platform/core/webhooks/webhook'
import { assert, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, enrolledCluster, expectError, newCaller, requestErrorCode } from '../../support/fixtures.ts'
import { countStoreCalls, maxConcurrentTransactions, onStoreCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import { readPendingRecords } from '../support/outbox.ts'
import {
  commitEvents,
  deliveriesOf,
  newEvent,
  publishEvents,
  subscribe,
  verifyDelivery,
  webhooksEnqueuedBy,
} from '../support/webhooks.ts'

// Throws after the first delivery attempt in this file, before the attempt is recorded.
vi.hoisted(() => Object.assign(process.env, { PLAT_FAILPOINT: 'webhook.attempted=throw' }))

beforeAll(() => bootstrapPlatform())

const hourMs = 3_600_000
const newEvents = (count: number) => Array.from({ length: count }, () => newEvent())

async function newSubscription() {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  return { caller, receiver, ...(await subscribe(caller, receiver)) }
}

const stateOf = async (caller: Caller, webhookId: string) =>
  (await deliveriesOf(caller, webhookId)).map(({ status, attempts }) => [status, attempts.length])

test('repeats an unrecorded attempt with the same id once the lease has expired', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await publishEvents(caller, newEvent())
  await expect(drainDeliveries(reference)).rejects.toThrow('webhook.attempted')
  expect(await deliveriesOf(caller, id)).toMatchObject([{ status: 'Pending', attempts: [] }])

  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([])
  expect(await webhooksEnqueuedBy(sweep)).toEqual([])
  expect(receiver.requests).toHaveLength(1)

  advanceClock(31_000)
  expect(await webhooksEnqueuedBy(sweep)).toEqual([id])
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(await deliveriesOf(caller, id)).toMatchObject([{ status: 'Delivered', attempts: [{ statusCode: 204 }] }])
})

test('does not send pending events of jobs of a removed cluster, but sends those of others', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  const { cluster: removedCluster } = await enrolledCluster(caller)
  const { cluster: keptCluster } = await enrolledCluster(caller)
  const ofCluster = (clusterId: string) => {
    const event = newEvent('job.completed')
    return { ...event, data: { ...event.data, clusterId } } as EventOf
  }
  receiver.respondWith(503)
  await publishEvents(caller, ofCluster(removedCluster.id), ofCluster(keptCluster.id))
  await drainDeliveries(reference)
  receiver.respondWith(204)
  receiver.requests.length = 0
  await Cluster.remove(caller, removedCluster.id)
  await runProjections(caller.organisationId, [webhookProjection])
  advanceClock(hourMs)
  await drainDeliveries(reference)
  const sentEvents = receiver.requests.map(({ body }) => JSON.parse(body))
  const jobEvents = sentEvents.filter(({ type }) => type === 'platform.job.completed')
  expect(jobEvents.map(({ data }) => data.clusterId)).toEqual([keptCluster.id])
  expect(sentEvents.map(({ type }) => type)).toContain('platform.cluster.deleted')
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).not.toContain('Pending')
})

test('delivers events as CloudEvents that the reference implementation verifies', async () => {
  const { caller, receiver, secret, reference, id } = await newSubscription()
  const events = [newEvent(), newEvent('job.completed'), newEvent()]
  await publishEvents(caller, ...events)
  await drainDeliveries(reference)

  const receivedEvents = receiver.requests.map((request) => CloudEvent.parse(verifyDelivery(secret, request)))
  expect(receivedEvents.map(({ type, subject, data }) => ({ name: type, subject, data }))).toEqual(
    events.map(({ name, subject, data }) => ({ name: `platform.${name}`, subject, data })),
  )
  expect(receivedEvents.map(({ source }) => source)).toEqual(
    events.map(() => `/organisations/${caller.organisationId}`),
  )
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(receivedEvents.map((event) => event.id))
  for (const { headers } of receiver.requests) {
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Platform\//),
    })
  }
  const deliveries = await deliveriesOf(caller, id)
  expect(deliveries.map(({ eventId }) => eventId)).toEqual(receivedEvents.map((event) => event.id).toReversed())
  const attempts = [{ at: expect.any(String), statusCode: 204, durationMs: expect.any(Number) }]
  for (const delivery of deliveries) {
    expect([delivery.status, delivery.attempts, delivery.nextAttemptAt]).toEqual(['Delivered', attempts, undefined])
  }
})

test('repeated projections and messages deliver each event once', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await commitEvents(caller, ...newEvents(3))
  const records = (await readPendingRecords(caller.organisationId)).filter(({ events }) => events.length > 0)
  const project = () => webhookProjection.beforeCommit?.(caller.organisationId, records)
  await Promise.all([project(), project(), project()])
  await Promise.all(Array.from({ length: 6 }, () => drainDeliveries(reference)))
  // Repeats the projection, as after a crash before its commit.
  await project()
  await Promise.all(Array.from({ length: 4 }, () => runProjections(caller.organisationId, [webhookProjection])))
  await Promise.all(Array.from({ length: 6 }, () => drainDeliveries(reference)))
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(
    records.flatMap(({ events }) => events.map((event) => event.id)),
  )
  expect(await stateOf(caller, id)).toEqual(records.map(() => ['Delivered', 1]))
})

test('a projection stores only missing deliveries, in four calls', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  const commitTogether = (count: number) => commit(caller, { writes: [], events: newEvents(count) })
  await commitTogether(20)
  await webhookProjection.beforeCommit?.(caller.organisationId, await readPendingRecords(caller.organisationId))
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(20)
  await commitTogether(25)
  const records = (await readPendingRecords(caller.organisationId)).filter(({ events }) => events.length > 0)
  const project = async () => webhookProjection.beforeCommit?.(caller.organisationId, records)
  expect(await countStoreCalls(project)).toBe(4)
  expect(await countStoreCalls(project)).toBe(3)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(45)
  expect(await stateOf(caller, id)).toEqual(Array.from({ length: 45 }, () => ['Delivered', 1]))
})

test('a projection stores deliveries of three webhooks concurrently', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const webhooks = []
  for (let count = 0; count < 8; count++) webhooks.push(await subscribe(caller, receiver))
  await commit(caller, { writes: [], events: [newEvent()] })
  const records = await readPendingRecords(caller.organisationId)
  const project = async () => webhookProjection.beforeCommit?.(caller.organisationId, records)
  expect(await maxConcurrentTransactions(project)).toBe(3)
  const deliveries = await Promise.all(webhooks.map(({ id }) => deliveriesOf(caller, id)))
  expect(deliveries.map(({ length }) => length)).toEqual(webhooks.map(() => 1))
})

test('a projection enqueues each webhook once, and the sweep enqueues lost messages again', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const [firstWebhook, secondWebhook] = [await subscribe(caller, receiver), await subscribe(caller, receiver)]
  const webhookIds = [firstWebhook.id, secondWebhook.id].toSorted()
  await sweep()
  const enqueuedBy = async (work: () => Promise<unknown>) =>
    (await webhooksEnqueuedBy(work)).filter((id) => webhookIds.includes(id)).toSorted()
  expect(await enqueuedBy(() => publishEvents(caller, ...newEvents(3)))).toEqual(webhookIds)
  expect(await enqueuedBy(sweep)).toEqual([])
  advanceClock(60_000)
  expect(await enqueuedBy(sweep)).toEqual(webhookIds)
  await Promise.all([drainDeliveries(firstWebhook.reference), drainDeliveries(secondWebhook.reference)])
  expect(receiver.requests).toHaveLength(6)
  advanceClock(60_000)
  expect(await enqueuedBy(sweep)).toEqual([])
})

test('a worker stops at its time limit, and the next message continues', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await publishEvents(caller, ...newEvents(3))
  receiver.respond = (_, response) => {
    advanceClock(6000)
    response.writeHead(200).end()
  }
  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([id])
  expect(receiver.requests).toHaveLength(2)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(3)
})

test('a worker sees events that arrive before it releases its lease', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await publishEvents(caller, newEvent())
  const pk = keys.pendingDeliveriesOf(caller.organisationId, id)
  let isPublished = false
  using _ = onStoreCall({
    after: async ({ input }, { Items }) => {
      if (isPublished || input.ExpressionAttributeValues?.[':pk'] !== pk || Items.length > 0) return
      isPublished = true
      await publishEvents(caller, newEvent())
      // The message of this event finds the lease taken.
      await drainDeliveries(reference)
    },
  })
  await drainDeliveries(reference)
  expect(isPublished).toBe(true)
  expect(receiver.requests).toHaveLength(2)
})

test('redelivers an event with the same body and id', async () => {
  const { caller, receiver, secret, reference, id } = await newSubscription()
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const [delivery] = await deliveriesOf(caller, id)
  const redelivery = await Delivery.redeliver(caller, id, delivery?.id ?? '')
  expect([redelivery.id, redelivery.status, redelivery.attempts.length]).toEqual([delivery?.id, 'Pending', 1])
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(new Set(receiver.requests.map(({ body, headers }) => [headers['webhook-id'], body].join())).size).toBe(1)
  for (const request of receiver.requests) verifyDelivery(secret, request)
  expect(await stateOf(caller, id)).toEqual([['Delivered', 2]])
})

test('a redelivery request replaces the scheduled retry', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  receiver.respondWith(500)
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  receiver.respondWith(200)
  const [pending] = await deliveriesOf(caller, id)
  await Delivery.redeliver(caller, id, pending?.id ?? '')
  await drainDeliveries(reference)
  advanceClock(24 * hourMs)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
})

test('sends a test event to its webhook only, regardless of the subscription', async () => {
  const [caller, receiver, otherReceiver] = [await newCaller(), newReceiver(), newReceiver()]
  const testedWebhook = await subscribe(caller, receiver, ['platform.job.failed'])
  const otherWebhook = await subscribe(caller, otherReceiver, ['*'])
  const delivery = await Delivery.test(caller, testedWebhook.id)
  expect(delivery).toMatchObject({ status: 'Pending', eventType: 'platform.webhook.tested', attempts: [] })
  await runProjections(caller.organisationId, [webhookProjection])
  await Promise.all([drainDeliveries(testedWebhook.reference), drainDeliveries(otherWebhook.reference)])
  expect(receiver.requests.map((request) => verifyDelivery(testedWebhook.secret, request))).toEqual([
    expect.objectContaining({
      id: delivery.eventId,
      type: 'platform.webhook.tested',
      data: { webhookId: testedWebhook.id },
    }),
  ])
  expect(otherReceiver.requests).toEqual([])
})

test('drops pending deliveries of a removed webhook', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await publishEvents(caller, ...newEvents(2))
  await Webhook.remove(caller, id)
  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([])
  advanceClock(hourMs)
  expect(await webhooksEnqueuedBy(sweep)).not.toContain(id)
  await drainDeliveries(reference)
  expect(receiver.requests).toEqual([])
  await expectError(deliveriesOf(caller, id), 'webhook_not_found')
})

test('stops delivering to a webhook that is removed during an attempt', async () => {
  const { caller, receiver, reference, id } = await newSubscription()
  await publishEvents(caller, ...newEvents(2))
  receiver.respond = (_, response) => void Webhook.remove(caller, id).then(() => response.writeHead(200).end())
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
})

test('rejects redelivery of unknown and expired deliveries, and for disabled webhooks', async () => {
  const { caller, reference, id } = await newSubscription()
  await publishEvents(caller, newEvent())
  await drainDeliveries(reference)
  const deliveryId = (await deliveriesOf(caller, id))[0]?.id ?? ''
  await expectError(Delivery.redeliver(caller, id, 'dlv_x'), 'delivery_not_found')
  await Webhook.change(caller, id, { enabled: false })
  await expectError(Delivery.redeliver(caller, id, deliveryId), 'webhook_disabled')
  const request = `POST /api/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`
  expect(await requestErrorCode('webhooks', request, [caller, 'OrgAdmin'])).toBe('webhook_disabled')
  await expectError(Delivery.test(caller, id), 'webhook_disabled')
  await Webhook.change(caller, id, { enabled: true })
  advanceClock(31 * 24 * hourMs)
  expect(await deliveriesOf(caller, id)).toEqual([])
  await expectError(Delivery.redeliver(caller, id, deliveryId), 'delivery_not_found')
})

const firstBackOffMs = 12_500

async function failingSubscription(status: number) {
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
  const { caller, receiver, secret, reference, id, publishAndDrain } = await failingSubscription(500)
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
  ['redirected', 307, (receiver: Receiver) => receiver.respondWith(307, { location: unlistedReceiver.url })],
  [
    'connection_failed',
    undefined,
    (receiver: Receiver) => {
      receiver.respond = (request) => void request.socket.destroy()
    },
  ],
])('records the error %s', async (error, statusCode, prepare) => {
  const { caller, receiver, id, publishAndDrain } = await failingSubscription(200)
  prepare(receiver)
  await publishAndDrain(newEvent())
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', 1])
  expect(delivery?.attempts[0]).toMatchObject({ error, ...(statusCode && { statusCode }) })
  expect(unlistedReceiver.requests).toEqual([])
})

test('calls no address that only PLAT_OUTBOUND_ALLOW lists', async () => {
  const { caller, id, publishAndDrain } = await failingSubscription(200)
  const { url } = unlistedReceiver
  await expectError(Webhook.create(caller, { url, events: ['*'] }), 'url_not_allowed')
  await expectError(Webhook.change(caller, id, { url }), 'url_not_allowed')
  await Webhook.change(caller, id, { url: url.replace('127.0.0.1', 'localhost') })
  await publishAndDrain(newEvent())
  const [delivery] = await deliveriesOf(caller, id)
  expect(['address_not_allowed', 'name_not_resolved']).toContain(delivery?.attempts[0]?.error)
  expect(unlistedReceiver.requests).toEqual([])
})

test('after rotations of the secret, each replaced secret keeps signing for 24 hours', async () => {
  const { caller, receiver, id, secret, publishAndDrain } = await failingSubscription(200)
  runBefore(/^TransactWrite/, () => Webhook.rotateSecret(caller, id))
  await expectError(Webhook.rotateSecret(caller, id), 'conflict')
  advanceClock(12 * hourMs)
  const rotation = await Webhook.rotateSecret(caller, id)
  expect(Date.parse(rotation.previousSecretExpiresAt ?? '') - now()).toBeCloseTo(24 * hourMs, -5)
  for (const [elapsedHours, isValid, signatures] of [
    [11, true, 3],
    [2, false, 2],
    [12, false, 1],
  ] as const) {
    advanceClock(elapsedHours * hourMs)
    await publishAndDrain(newEvent())
    const request = receiver.requests.at(-1)
    assert(request !== undefined)
    expect(String(request.headers['webhook-signature']).split(' ')).toHaveLength(signatures)
    expect(verifyDelivery(rotation.secret, request, now())).toMatchObject({ type: 'platform.cluster.deleted' })
    const verifyOld = () => verifyDelivery(secret, request, now())
    if (isValid) expect(verifyOld()).toBeDefined()
    else expect(verifyOld).toThrow()
  }
  expect(await firstWebhook(caller)).not.toHaveProperty('previousSecretExpiresAt')
})

test('rejects a rotation that would end the 24 hours of an earlier secret', async () => {
  const { caller, id } = await failingSubscription(200)
  for (let count = 0; count < 4; count++) await Webhook.rotateSecret(caller, id)
  const rotation = `POST /api/v1/webhooks/${id}/rotate-secret`
  expect(await requestErrorCode('webhooks', rotation, [caller, 'OrgAdmin'])).toBe('limit_reached')
  advanceClock(24 * hourMs)
  await Webhook.rotateSecret(caller, id)
})

test('reads an endless response up to its limit and accepts its status', async () => {
  const { caller, receiver, id, publishAndDrain } = await failingSubscription(200)
  receiver.respond = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(65_536)), 1)
    response.on('close', () => clearInterval(timer))
  }
  await publishAndDrain(newEvent())
  expect(await statusesOf(caller, id)).toEqual(['Delivered'])
})

test.each([30, 24 * 60])(
  'delivers the events that were pending when the clock was set back by %i minutes',
  async (minutes) => {
    const { caller, receiver, reference, id } = await newSubscription()
    receiver.respondWith(503)
    await publishEvents(caller, newEvent())
    await drainDeliveries(reference)
    await publishEvents(caller, newEvent())
    const lease = { leaseId: 'of a worker that was killed', leaseUntilMs: now() + 30_000 }
    await update(keys.webhook(caller.organisationId, id), { set: lease })
    await sweep()
    advanceClock(-minutes * 60_000)
    receiver.respondWith(204)
    expect(await webhooksEnqueuedBy(sweep)).toContain(id)
    await drainDeliveries(reference)
    expect(await stateOf(caller, id)).toEqual([
      ['Delivered', 1],
      ['Delivered', 2],
    ])
  },
)

test('backs off from a failing receiver with growing pauses', async () => {
  const { caller, receiver, reference, publishAndDrain } = await failingSubscription(503)
  await publishAndDrain(...newEvents(15))
  for (let message = 0; message < 4; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(1)
  advanceClock(firstBackOffMs)
  for (let message = 0; message < 5; message++) await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  // The second back-off is longer than the first.
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
  const { receiver, publishAndDrain } = await failingSubscription(status)
  await publishAndDrain(...newEvents(2))
  expect(receiver.requests).toHaveLength(1)
})

test('disables a webhook after twenty consecutive failures and delivers pending events once it is enabled', async () => {
  const { caller, receiver, id, reference, url } = await failingSubscription(500)
  await publishEvents(caller, ...newEvents(4))
  for (let failure = 1; failure < failureLimit; failure++) {
    await drainDeliveries(reference)
    expect(receiver.requests).toHaveLength(failure)
    expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: failure })
    advanceClock(15 * hourMs)
  }
  expect(await readPendingRecords(caller.organisationId)).toEqual([])
  await drainDeliveries(reference)
  const disabledState = { enabled: false, failureCount: failureLimit, disabledAt: expect.any(String) }
  expect(await firstWebhook(caller)).toMatchObject(disabledState)
  const data = { webhookId: id, url: new URL(url).origin, createdBy: caller.userId }
  expect((await readPendingRecords(caller.organisationId)).map(({ events, audit }) => [audit?.action, events])).toEqual(
    [['webhook.disable', [{ id: expect.any(String), name: 'webhook.disabled', subject: id, data }]]],
  )
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
  const webhook = await firstWebhook(colleague)
  expect([webhook?.enabled, webhook?.failureCount, webhook?.disabledAt]).toEqual([true, 0, undefined])
  await drainDeliveries(reference)
  expect(await statusesOf(caller, id)).not.toContain('Pending')
  expect(receiver.requests).toHaveLength(failureLimit + pendingCount)
})

test('rejected events count as failures, and a success resets the count', async () => {
  const { caller, receiver, publishAndDrain } = await failingSubscription(400)
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
  const { caller, receiver, id, publishAndDrain } = await failingSubscription(410)
  await publishAndDrain(...newEvents(2))
  expect(receiver.requests).toHaveLength(1)
  expect(await firstWebhook(caller)).toMatchObject({ enabled: false, disabledAt: expect.any(String) })
  expect(
    (await readPendingRecords(caller.organisationId)).map(({ events, audit }) => [audit, events[0]?.name]),
  ).toEqual([[{ action: 'webhook.disable', resource: id, detail: 'answered 410 Gone' }, 'webhook.disabled']])
  expect(await statusesOf(caller, id)).toEqual(['Pending', 'Pending'])
})

test.each([400, 401, 404, 422])('events rejected with status %d delay no other event', async (status) => {
  const { caller, receiver, id, publishAndDrain } = await failingSubscription(204)
  const rejectedEvents = newEvents(12)
  receiver.respond = (_, response) => {
    const isRejected = rejectedEvents.some(({ subject }) => receiver.requests.at(-1)?.body.includes(subject))
    response.writeHead(isRejected ? status : 204).end()
  }
  await publishAndDrain(...rejectedEvents, newEvent())
  expect(await statusesOf(caller, id)).toEqual(['Delivered', ...rejectedEvents.map(() => 'Pending')])
  // Each event has its own schedule, so none is retried at once.
  expect(receiver.requests).toHaveLength(13)
  expect(await firstWebhook(caller)).toMatchObject({ enabled: true, failureCount: 0 })
})

test('rejected events do not lengthen the back-off', async () => {
  const { receiver, reference, publishAndDrain } = await failingSubscription(400)
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
  const { caller, receiver, reference, publishAndDrain } = await failingSubscription(503)
  const [failedEvent, freshEvent] = [newEvent(), newEvent()]
  await publishAndDrain(failedEvent)
  advanceClock(20_000)
  await publishEvents(caller, freshEvent)
  receiver.respondWith(204)
  await drainDeliveries(reference)
  expect(receiver.requests.map(({ body }) => JSON.parse(body).subject)).toEqual(
    [failedEvent, freshEvent, failedEvent].map(({ subject }) => subject),
  )
})
