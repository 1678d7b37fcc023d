// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver } from '../support/receivers.ts'
import { commit } from '@platform/core/outbox/commit'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { beforeAll, expect, test } from 'vitest'
import { countStoreCalls, maxConcurrentTransactions } from '../../support/store-calls.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { deliveriesOf, newEvent, subscribe } from '../support/webhooks.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(() => bootstrapPlatform())

test('where some of many events are stored already the others follow at once, and those stay as they are', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
  const tell = (count: number) =>
    commit(caller, { writes: [], events: Array.from({ length: count }, () => newEvent()) })
  await tell(20)
  await webhookProjection.beforeCommit?.(caller.organisationId, await pendingRecords(caller.organisationId))
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(20)
  await tell(25)
  const all = (await pendingRecords(caller.organisationId)).filter(({ events }) => events.length > 0)
  // The webhooks; what is refused, what is there, and the rest.
  expect(await countStoreCalls(async () => webhookProjection.beforeCommit?.(caller.organisationId, all))).toBe(4)
  // All are there: nothing is left to store.
  expect(await countStoreCalls(async () => webhookProjection.beforeCommit?.(caller.organisationId, all))).toBe(3)
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(45)
  const shown = await deliveriesOf(caller, id)
  expect(shown.map(({ status, attempts }) => [status, attempts.length])).toEqual(
    Array.from({ length: 45 }, () => ['Delivered', 1]),
  )
})

test('an organisation with many webhooks stores for three of them at a time, and for each of them', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const hooks = []
  for (let count = 0; count < 8; count++) hooks.push(await subscribe(caller, receiver))
  await commit(caller, { writes: [], events: [newEvent()] })
  const records = await pendingRecords(caller.organisationId)
  expect(
    await maxConcurrentTransactions(async () => webhookProjection.beforeCommit?.(caller.organisationId, records)),
  ).toBe(3)
  const stored = await Promise.all(hooks.map(({ id }) => deliveriesOf(caller, id)))
  expect(stored.map((deliveries) => deliveries.length)).toEqual(hooks.map(() => 1))
})
