import { expect, test } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import { operationLeaseMs, LeaseLost } from '@platform/core/operations/operation'
import { holdLease } from '@platform/core/operations/lease'
import { newCaller } from '../../support/fixtures.ts'
import { claimed, pendingOperation } from '../../core/support/operations.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { advanceClock } from '../../core/support/notifications.ts'

async function openedJournal() {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  return { caller, operation, journal: holdLease(await claimed(operation)) }
}

test('a store that was away when a claim was renewed does not end the work: the next step is entered as ever', async () => {
  const { caller, operation, journal } = await openedJournal()
  {
    using _ = onStoreCall({
      before: async () => {
        throw new Error('The connection has ended.')
      },
    })
    await expect(journal.renew()).rejects.toThrow('The connection has ended.')
  }
  await journal.startStep('deploy')
  expect((await Job.read(caller, operation.id)).steps).toMatchObject([{ status: 'Running' }, { status: 'Pending' }])
})

test('a worker that has lost its operation hears so at every write from then on', async () => {
  const { operation, journal } = await openedJournal()
  advanceClock(operationLeaseMs + 1)
  await claimed(operation)
  await expect(journal.renew()).rejects.toThrow(LeaseLost)
  await expect(journal.startStep('deploy')).rejects.toThrow(LeaseLost)
  await expect(journal.releaseForRetry(1000, 'It failed.')).rejects.toThrow(LeaseLost)
})
