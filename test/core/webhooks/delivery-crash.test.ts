// First: sets PLAT_OUTBOUND_ALLOW before core reads it.
import { newReceiver } from '../support/receivers.ts'
import { sweep } from '@platform/core/background/sweep'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, newCaller } from '../../support/fixtures.ts'
import { deliveriesOf, newEvent, publishEvents, subscribe, webhooksEnqueuedBy } from '../support/webhooks.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_FAILPOINT: 'webhook.attempted=throw' }))

test('repeats an unrecorded attempt with the same id once the lease has expired', async () => {
  await bootstrapPlatform()
  const [caller, receiver] = [await newCaller(), newReceiver()]
  const { reference, id } = await subscribe(caller, receiver)
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
