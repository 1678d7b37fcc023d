// First: it sets what the platform may reach, which core reads when it is imported.
import { newReceiver } from '../support/receivers.ts'
import { shiftClock } from '@platform/core/clock'
import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { sweep } from '@platform/core/background/sweep'
import { beforeAll, expect, test, vi } from 'vitest'
import { callerOf, started } from '../../support/world.ts'
import { announcedWhile, deliveriesOf, eventOf, happen, subscribe, verified } from '../support/webhooks.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_FAILPOINT: 'webhook.attempted=throw' }))

beforeAll(() => started())

test('an attempt whose record was lost is made again under the same id, once the lease is over', async () => {
  const [caller, receiver] = [await callerOf(), newReceiver()]
  const { secret, reference, id } = await subscribe(caller, receiver)
  await happen(caller, eventOf())
  await expect(drainDeliveries(reference)).rejects.toThrow('webhook.attempted')
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts])).toEqual([['Pending', []]])

  // Whoever died may live: nobody else touches the webhook until its lease is over.
  expect(await announcedWhile(() => drainDeliveries(reference))).toEqual([])
  expect(await announcedWhile(sweep)).toEqual([])
  expect(receiver.got).toHaveLength(1)

  shiftClock(31_000)
  expect(await announcedWhile(sweep)).toEqual([id])
  await drainDeliveries(reference)
  expect(receiver.got).toHaveLength(2)
  expect(new Set(receiver.got.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  for (const got of receiver.got) verified(secret, got)
  expect((await deliveriesOf(caller, id)).map(({ status, attempts }) => [status, attempts.length])).toEqual([
    ['Delivered', 1],
  ])
})
