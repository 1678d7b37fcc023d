import { expect, test } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import { operationLeaseMs, LeaseLost } from '@platform/core/operations/operation'
import { holdLease } from '@platform/core/operations/lease'
import { callerOf } from '../../support/world.ts'
import { begun, waitingOperation } from '../../core/support/operations.ts'
import { atStoreCalls } from '../../core/support/store-hook.ts'
import { later } from '../../core/support/told.ts'

async function openedJournal() {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  return { caller, operation, journal: holdLease(await begun(operation)) }
}

test('a store that was away when a claim was renewed does not end the work: the next step is entered as ever', async () => {
  const { caller, operation, journal } = await openedJournal()
  {
    using _ = atStoreCalls({
      before: async () => {
        throw new Error('The connection has ended.')
      },
    })
    await expect(journal.keep()).rejects.toThrow('The connection has ended.')
  }
  await journal.enter('deploy')
  expect((await Job.read(caller, operation.id)).steps).toMatchObject([{ status: 'Running' }, { status: 'Pending' }])
})

test('a worker that has lost its operation hears so at every write from then on', async () => {
  const { operation, journal } = await openedJournal()
  later(operationLeaseMs + 1)
  await begun(operation)
  await expect(journal.keep()).rejects.toThrow(LeaseLost)
  await expect(journal.enter('deploy')).rejects.toThrow(LeaseLost)
  await expect(journal.leave(1000, 'It failed.')).rejects.toThrow(LeaseLost)
})
