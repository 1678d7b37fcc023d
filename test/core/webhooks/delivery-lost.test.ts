// First: it sets settings that core reads when it is imported.
import { newReceiver } from '../support/receivers.ts'
import { shiftClock } from '@platform/core/clock'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { sweep } from '@platform/core/background/sweep'
import { beforeAll, expect, test, vi } from 'vitest'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import {
  webhooksEnqueuedBy,
  deliveriesOf,
  newEvent,
  publishEvents,
  subscribe,
  verifyDelivery,
} from '../support/webhooks.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_FAILPOINT: 'webhook.attempted=throw' }))

beforeAll(() => bootstrapPlatform())

test('an attempt whose record was lost is made again under the same id, once the lease is over', async () => {
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  await publishEvents(caller, newEvent())
  await expect(drainDeliveries(reference)).rejects.toThrow('webhook.attempted')
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts])).toEqual([['Pending', []]])

  // Whoever died may live: nobody else touches the webhook until its lease is over.
  expect(await webhooksEnqueuedBy(() => drainDeliveries(reference))).toEqual([])
  expect(await webhooksEnqueuedBy(sweep)).toEqual([])
  expect(receiver.requests).toHaveLength(1)

  shiftClock(31_000)
  expect(await webhooksEnqueuedBy(sweep)).toEqual([id])
  await drainDeliveries(reference)
  expect(receiver.requests).toHaveLength(2)
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  for (const got of receiver.requests) verifyDelivery(secret, got)
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts.length])).toEqual([
    ['Delivered', 1],
  ])
})
