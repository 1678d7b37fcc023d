// First: it sets what the platform may reach, which core reads when it is imported.
import { forbiddenReceiver, newReceiver } from './support/receivers.ts'
import { CloudEvent } from '@platform/contract/event'
import { bookRecords } from '@platform/core/books'
import { commit } from '@platform/core/change'
import { now, shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { workOff } from '@platform/core/delivery'
import * as Delivery from '@platform/core/delivery-log'
import { failureLimit, jitterShare, retrySeconds } from '@platform/core/delivery-record'
import { parseRecord } from '@platform/core/record'
import { sweep } from '@platform/core/sweep'
import * as Webhook from '@platform/core/webhook'
import { webhookBook } from '@platform/core/webhook-book'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../../conformance/until.ts'
import { handler } from '../../functions/queue/webhooks.ts'
import { callerOf, refusalOf, started } from '../support/world.ts'
import { announced, deliveriesOf, eventOf, happen, subscribe, verified } from './support/webhooks.ts'

beforeAll(() => started())

let shiftedMs = 0
/** Time passes, until the end of the test. */
const pass = (ms: number): void => {
  shiftClock(ms)
  shiftedMs += ms
}
afterEach(() => {
  shiftClock(-shiftedMs)
  shiftedMs = 0
})

const hour = 3_600_000

/** What the outbox of an organisation tells and no book has taken. */
const told = async (organisationId: string) =>
  (await query({ pk: keys.outbox(organisationId, '').pk })).items.map(parseRecord)

test('a receiver verifies every delivery with the reference implementation', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  const events = [eventOf(), eventOf('job.completed'), eventOf()]
  await happen(caller, ...events)
  await workOff(reference)

  const received = receiver.got.map((got) => CloudEvent.parse(verified(secret, got)))
  expect(received.map(({ type, subject, data }) => ({ name: type, subject, data }))).toEqual(
    events.map(({ name, subject, data }) => ({ name: `platform.${name}`, subject, data })),
  )
  expect(received.map(({ source }) => source)).toEqual(events.map(() => `/organisations/${caller.organisationId}`))
  expect(receiver.got.map(({ headers }) => headers['webhook-id'])).toEqual(received.map((event) => event.id))
  for (const { headers } of receiver.got) {
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
  const [caller, receiver] = [callerOf(), newReceiver()]
  const mine = await subscribe(caller, receiver, ['platform.cluster.*'])
  const other = await subscribe(caller, receiver, ['platform.job.*'])
  await happen(caller, eventOf())
  await workOff(mine.reference)
  const [got] = receiver.got
  if (got === undefined) throw new Error('Nothing was delivered.')
  expect(() => verified(mine.secret, got)).not.toThrow()
  expect(() => verified(other.secret, got)).toThrow()
  expect(() => verified(mine.secret, { ...got, body: `${got.body} ` })).toThrow()
  expect(() => verified(mine.secret, { ...got, headers: { ...got.headers, 'webhook-id': 'evt_x' } })).toThrow()
  expect(() => verified(mine.secret, got, now() + 6 * 60_000)).toThrow('too old')
})

test('a webhook gets what it has subscribed to: everything, an area, or single events', async () => {
  const caller = callerOf()
  const wanted = [
    ['*'],
    ['platform.job.*'],
    ['platform.cluster.deleted'],
    ['platform.cluster.*', 'platform.job.completed'],
  ]
  const hooks = await Promise.all(
    wanted.map(async (events) => {
      const receiver = newReceiver()
      return { receiver, ...(await subscribe(caller, receiver, events)) }
    }),
  )
  await happen(caller, eventOf('cluster.deleted'), eventOf('job.completed'))
  await Promise.all(hooks.map(({ reference }) => workOff(reference)))
  expect(hooks.map(({ receiver }) => receiver.got.map(({ body }) => JSON.parse(body).type))).toEqual([
    ['platform.cluster.deleted', 'platform.job.completed'],
    ['platform.job.completed'],
    ['platform.cluster.deleted'],
    ['platform.cluster.deleted', 'platform.job.completed'],
  ])
})

test('what happens in an organisation is told to nobody else, and to no webhook that is switched off', async () => {
  const [mine, other, receiver] = [callerOf(), callerOf(), newReceiver()]
  const foreign = await subscribe(other, receiver)
  const off = await subscribe(mine, receiver)
  await Webhook.change(mine, off.id, { enabled: false })
  await happen(mine, eventOf())
  await Promise.all([workOff(foreign.reference), workOff(off.reference)])
  expect(receiver.got).toEqual([])
  expect(await deliveriesOf(mine, off.id)).toEqual([])
})

test('events that are booked again and again, messages that come many times: one delivery of each', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  for (const event of [eventOf(), eventOf(), eventOf()]) await commit(caller, { steps: [], events: [event] })
  const records = (await told(caller.organisationId)).filter(({ events }) => events.length > 0)
  const prepare = () => webhookBook.prepare?.(caller.organisationId, records)
  await Promise.all([prepare(), prepare(), prepare()])
  await Promise.all(Array.from({ length: 6 }, () => workOff(reference)))
  // As it is after a kill between preparing and closing.
  await prepare()
  await Promise.all(Array.from({ length: 4 }, () => bookRecords(caller.organisationId, [webhookBook])))
  await Promise.all(Array.from({ length: 6 }, () => workOff(reference)))
  expect(receiver.got.map(({ headers }) => headers['webhook-id'])).toEqual(
    records.flatMap(({ events }) => events.map((event) => event.id)),
  )
  const shown = await deliveriesOf(caller, id)
  expect(shown.map(({ status, attempts }) => [status, attempts.length])).toEqual(shown.map(() => ['Delivered', 1]))
})

test('a hundred events of one closing are delivered, each once', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await commit(caller, { steps: [], events: Array.from({ length: 100 }, () => eventOf()) })
  await bookRecords(caller.organisationId, [webhookBook])
  await workOff(reference)
  expect(new Set(receiver.got.map(({ headers }) => headers['webhook-id'])).size).toBe(100)
  expect(receiver.got).toHaveLength(100)
  const last = await Delivery.list(caller, id, { page: 4, pageSize: 30 })
  expect([last.items.length, last.totalCount]).toEqual([10, 100])
})

test('a closing announces each webhook once, the sweep what was lost', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const [first, second] = [await subscribe(caller, receiver), await subscribe(caller, receiver)]
  await announced()
  await happen(caller, eventOf(), eventOf(), eventOf())
  expect((await announced()).toSorted()).toEqual([first.id, second.id].toSorted())
  await sweep()
  expect(await announced()).toEqual([])
  pass(60_000)
  await sweep()
  const again = await announced()
  expect(again.filter((id) => id === first.id || id === second.id).toSorted()).toEqual([first.id, second.id].toSorted())
  await Promise.all([workOff(first.reference), workOff(second.reference)])
  expect(receiver.got).toHaveLength(6)
  pass(60_000)
  await sweep()
  expect((await announced()).filter((id) => id === first.id || id === second.id)).toEqual([])
})

test('retries follow the schedule, signed afresh under the same id, and end after a day', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
  await workOff(reference)
  let waitedSeconds = 0
  for (const [index, seconds] of retrySeconds.entries()) {
    const [delivery] = await deliveriesOf(caller, id)
    expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', index + 1])
    const dueInMs = Date.parse(delivery?.nextAttemptAt ?? '') - now()
    expect(dueInMs).toBeGreaterThan(seconds * (1 - jitterShare) * 1000 - 5000)
    expect(dueInMs).toBeLessThanOrEqual(seconds * (1 + jitterShare) * 1000)
    await workOff(reference)
    pass(dueInMs - 3000)
    await workOff(reference)
    expect(receiver.got).toHaveLength(index + 1)
    pass(3000)
    await workOff(reference)
    expect(receiver.got).toHaveLength(index + 2)
    waitedSeconds += dueInMs / 1000
  }
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.nextAttemptAt]).toEqual(['Failed', undefined])
  expect(delivery?.attempts.map(({ error, statusCode }) => [error, statusCode])).toEqual(
    receiver.got.map(() => ['unsuccessful_status', 500]),
  )
  expect(waitedSeconds / 3600).toBeGreaterThan(24 * (1 - jitterShare) - 1)
  expect(waitedSeconds / 3600).toBeLessThan(24 * (1 + jitterShare))
  pass(48 * hour)
  await workOff(reference)
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
  ['an error', (receiver: ReturnType<typeof newReceiver>) => receiver.answerWith(404), 'unsuccessful_status', 404],
  [
    'a redirect to where it must not lead',
    (receiver: ReturnType<typeof newReceiver>) => receiver.answerWith(307, { location: forbiddenReceiver.url }),
    'redirected',
    307,
  ],
  [
    'nothing, and hangs up',
    (receiver: ReturnType<typeof newReceiver>) => (receiver.answer = (request) => void request.socket.destroy()),
    'connection_failed',
    undefined,
  ],
])('a receiver that answers with %s has not got it', async (_, prepare, error, statusCode) => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  prepare(receiver)
  await happen(caller, eventOf())
  await workOff(reference)
  const [delivery] = await deliveriesOf(caller, id)
  expect([delivery?.status, delivery?.attempts.length]).toEqual(['Pending', 1])
  expect(delivery?.attempts[0]).toMatchObject({ error, ...(statusCode && { statusCode }) })
  expect(forbiddenReceiver.got).toEqual([])
})

test('an answer without end is read to its cap, and is a success when it says so', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.answer = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'.repeat(65_536)), 1)
    response.on('close', () => clearInterval(timer))
  }
  await happen(caller, eventOf())
  await workOff(reference)
  expect((await deliveriesOf(caller, id)).map(({ status }) => status)).toEqual(['Delivered'])
})

test('a private address that its name hides is not reached, and the log says so', async () => {
  const caller = callerOf()
  const port = forbiddenReceiver.host.split(':')[1]
  const webhook = await Webhook.create(caller, { url: `http://localhost:${port}/`, events: ['*'] })
  await happen(caller, eventOf())
  await workOff({ organisationId: caller.organisationId, webhookId: webhook.id })
  const [delivery] = await deliveriesOf(caller, webhook.id)
  expect(['address_not_allowed', 'name_not_resolved']).toContain(delivery?.attempts[0]?.error)
  expect(forbiddenReceiver.got).toEqual([])
})

test('a receiver that hangs keeps nobody else waiting, and is given up after ten seconds', async () => {
  const [slow, quick] = [callerOf(), callerOf()]
  const [hanging, healthy] = [newReceiver(), newReceiver()]
  const [stuck, fine] = [await subscribe(slow, hanging), await subscribe(quick, healthy)]
  hanging.answer = () => undefined
  await happen(slow, eventOf(), eventOf())
  await happen(quick, eventOf())
  const messages = [stuck.reference, fine.reference].map((body, index) => ({
    messageId: String(index),
    body: JSON.stringify(body),
  }))
  let isOver = false
  const work = handler({ Records: messages }).finally(() => (isOver = true))
  await until('the healthy receiver has got its event', async () => healthy.got.length === 1)
  expect([hanging.got.length, isOver]).toEqual([1, false])
  // Another message does not wait in line behind the one that hangs.
  await workOff(stuck.reference)
  expect([hanging.got.length, isOver]).toEqual([1, false])
  expect(await work).toEqual({ batchItemFailures: [] })
  const attempts = (await deliveriesOf(slow, stuck.id)).flatMap((delivery) => delivery.attempts)
  expect(attempts.map(({ error }) => error)).toEqual(['timed_out'])
  expect(attempts[0]?.durationMs).toBeGreaterThan(9900)
})

test('many deliveries that wait do not hammer a receiver that fails', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.answerWith(503)
  await happen(caller, ...Array.from({ length: 15 }, () => eventOf()))
  for (let message = 0; message < 5; message++) await workOff(reference)
  expect(receiver.got).toHaveLength(1)
  pass(12_500)
  for (let message = 0; message < 5; message++) await workOff(reference)
  expect(receiver.got).toHaveLength(2)
  // A minute's worth of quiet: the second failure in a row.
  pass(12_500)
  await workOff(reference)
  expect(receiver.got).toHaveLength(2)
  await announced()
  await happen(caller, eventOf())
  expect(await announced()).toEqual([])
  receiver.answerWith(200)
  pass(72_000)
  await workOff(reference)
  expect(receiver.got).toHaveLength(18)
})

test('twenty failures in a row switch a webhook off and tell so; what waits goes out when it is on again', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { id, reference, url } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf(), eventOf(), eventOf(), eventOf())
  for (let failure = 1; failure < failureLimit; failure++) {
    await workOff(reference)
    expect(receiver.got).toHaveLength(failure)
    expect((await Webhook.list(caller)).items[0]).toMatchObject({ enabled: true, failureCount: failure })
    pass(15 * hour)
  }
  expect(await told(caller.organisationId)).toEqual([])
  await workOff(reference)
  expect((await Webhook.list(caller)).items[0]).toMatchObject({
    enabled: false,
    failureCount: failureLimit,
    disabledAt: expect.any(String),
  })
  expect((await told(caller.organisationId)).map(({ events, audit }) => [audit?.action, events])).toEqual([
    [
      'webhook.disable',
      [
        {
          id: expect.any(String),
          name: 'webhook.disabled',
          subject: id,
          data: { webhookId: id, url, createdBy: caller.userId },
        },
      ],
    ],
  ])
  pass(15 * hour)
  await workOff(reference)
  expect(receiver.got).toHaveLength(failureLimit)
  await announced()
  await sweep()
  expect(await announced()).not.toContain(id)

  const waiting = (await deliveriesOf(caller, id)).filter(({ status }) => status === 'Pending')
  expect(waiting.length).toBeGreaterThan(0)
  receiver.answerWith(200)
  const changed = await Webhook.change(caller, id, { enabled: true })
  expect([changed.enabled, changed.failureCount, changed.disabledAt]).toEqual([true, 0, undefined])
  expect(await announced()).toContain(id)
  await workOff(reference)
  const after = await deliveriesOf(caller, id)
  expect(after.filter(({ status }) => status === 'Pending')).toEqual([])
  expect(receiver.got).toHaveLength(failureLimit + waiting.length)
})

test('a success ends the count of failures', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
  await workOff(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(1)
  receiver.answerWith(200)
  pass(13_000)
  await workOff(reference)
  expect((await Webhook.list(caller)).items[0]?.failureCount).toBe(0)
})

test('a failed event does not hold up those behind it', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const [poison, ...others] = [eventOf(), eventOf(), eventOf()]
  receiver.answer = (_, response) => {
    const isPoison = receiver.got.at(-1)?.body.includes(poison.subject)
    response.writeHead(isPoison ? 500 : 200).end()
  }
  await happen(caller, poison, ...others)
  await workOff(reference)
  pass(12_500)
  await workOff(reference)
  const statuses = (await deliveriesOf(caller, id)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual(['Delivered', 'Delivered', 'Pending'])
})

test('a worker that has used its time hands on, and the next message goes on where it stopped', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf(), eventOf(), eventOf())
  await announced()
  receiver.answer = (_, response) => {
    pass(6000)
    response.writeHead(200).end()
  }
  await workOff(reference)
  expect(receiver.got).toHaveLength(2)
  expect(await announced()).toEqual([id])
  await workOff(reference)
  expect(receiver.got).toHaveLength(3)
})

test('what comes while a worker is at the end of its work is not left lying', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference } = await subscribe(caller, receiver)
  let isSecondTold = false
  receiver.answer = (_, response) => {
    const second = isSecondTold ? Promise.resolve() : happen(caller, eventOf())
    isSecondTold = true
    // Its message comes while the first worker has the lease, and does nothing.
    void second.then(() => workOff(reference)).then(() => response.writeHead(200).end())
  }
  await happen(caller, eventOf())
  await workOff(reference)
  expect(receiver.got).toHaveLength(2)
})

test('a delivery can be made again, whatever became of it, with the same body and id', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf())
  await workOff(reference)
  const [delivered] = await deliveriesOf(caller, id)
  const again = await Delivery.redeliver(caller, id, delivered?.id ?? '')
  expect([again.id, again.status, again.attempts.length]).toEqual([delivered?.id, 'Pending', 1])
  await workOff(reference)
  expect(receiver.got).toHaveLength(2)
  expect(new Set(receiver.got.map(({ body, headers }) => `${headers['webhook-id']} ${body}`)).size).toBe(1)
  for (const got of receiver.got) verified(secret, got)
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts.length])).toEqual([
    ['Delivered', 2],
  ])
})

test('one that waits for its retry goes out at once when it is asked for, and once', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  receiver.answerWith(500)
  await happen(caller, eventOf())
  await workOff(reference)
  receiver.answerWith(200)
  const [pending] = await deliveriesOf(caller, id)
  await Delivery.redeliver(caller, id, pending?.id ?? '')
  await workOff(reference)
  pass(24 * hour)
  await workOff(reference)
  expect(receiver.got).toHaveLength(2)
})

test('a test goes to its webhook alone, whatever that has subscribed to', async () => {
  const [caller, receiver, bystander] = [callerOf(), newReceiver(), newReceiver()]
  const tested = await subscribe(caller, receiver, ['platform.job.failed'])
  const other = await subscribe(caller, bystander, ['*'])
  const delivery = await Delivery.test(caller, tested.id)
  expect(delivery).toMatchObject({ status: 'Pending', eventType: 'platform.webhook.tested', attempts: [] })
  await bookRecords(caller.organisationId, [webhookBook])
  await Promise.all([workOff(tested.reference), workOff(other.reference)])
  expect(receiver.got.map((got) => verified(tested.secret, got))).toEqual([
    expect.objectContaining({ id: delivery.eventId, type: 'platform.webhook.tested', data: { webhookId: tested.id } }),
  ])
  expect(bystander.got).toEqual([])
})

test('what waits for a webhook that is removed is not delivered', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf(), eventOf())
  await Webhook.remove(caller, id)
  await announced()
  await workOff(reference)
  pass(hour)
  await sweep()
  expect(await announced()).not.toContain(id)
  await workOff(reference)
  expect(receiver.got).toEqual([])
  expect(await refusalOf(deliveriesOf(caller, id))).toBe('webhook_not_found')
})

test('a webhook that is removed while it is delivered to gets nothing more', async () => {
  const [caller, receiver] = [callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf(), eventOf())
  receiver.answer = (_, response) => void Webhook.remove(caller, id).then(() => response.writeHead(200).end())
  await workOff(reference)
  expect(receiver.got).toHaveLength(1)
})

test('a foreign, unknown or forgotten delivery cannot be made again; nor can one of a webhook that is off', async () => {
  const [caller, other, receiver] = [callerOf(), callerOf(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf())
  await workOff(reference)
  const [{ id: deliveryId = '' } = {}] = await deliveriesOf(caller, id)
  expect(await refusalOf(Delivery.redeliver(other, id, deliveryId))).toBe('webhook_not_found')
  expect(await refusalOf(Delivery.redeliver(caller, id, 'dlv_x'))).toBe('delivery_not_found')
  await Webhook.change(caller, id, { enabled: false })
  expect(await refusalOf(Delivery.redeliver(caller, id, deliveryId))).toBe('webhook_disabled')
  expect(await refusalOf(Delivery.test(caller, id))).toBe('webhook_disabled')
  await Webhook.change(caller, id, { enabled: true })
  pass(31 * 24 * hour)
  expect(await deliveriesOf(caller, id)).toEqual([])
  expect(await refusalOf(Delivery.redeliver(caller, id, deliveryId))).toBe('delivery_not_found')
})
