import { expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { now } from '@platform/core/clock'
import { sweep } from '@platform/core/background/sweep'
import * as Job from '@platform/core/jobs/job'
import { type OperationType } from '@platform/core/operations/record'
import { callerOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { begun, ended, waitingOperation } from '../support/operations.ts'
import { later } from '../support/told.ts'

/** How operations of each type end, and what is left of them. */

await started()

const reasons: Record<OperationType, string> = {
  ModuleInstall: 'module_operation_failed',
  ModuleUninstall: 'module_operation_failed',
  PlatformUpdate: 'update_failed',
  PlatformRollback: 'update_failed',
}

test.each(Object.entries(reasons) as [OperationType, string][])(
  'a %s that fails says so by %s, to who asks and to who listens; one that is completed has no reason',
  async (type, statusReason) => {
    const caller = await callerOf()
    const [bad, good] = [
      await begun(await waitingOperation(caller, type)),
      await begun(await waitingOperation(caller, type)),
    ]
    await ended(bad, { status: 'Failed', outcome: 'No.' })
    await ended(good, { status: 'Completed', outcome: 'Yes.' })
    expect(await Job.read(caller, bad.id)).toMatchObject({ status: 'Failed', statusReason })
    expect(await Job.read(caller, good.id)).not.toHaveProperty('statusReason')
    const events = (await waitingRecords(caller.organisationId)).flatMap((record) => record.events)
    const facts = { type, createdBy: caller.userId, previousStatus: 'Running' }
    expect(events.filter(({ name }) => name === 'job.failed' || name === 'job.completed')).toEqual([
      { id: expect.any(String), name: 'job.failed', subject: bad.id, data: { ...facts, jobId: bad.id, statusReason } },
      { id: expect.any(String), name: 'job.completed', subject: good.id, data: { ...facts, jobId: good.id } },
    ])
  },
)

test('the sweep forgets an operation that is over', async () => {
  const caller = await callerOf()
  const worker = await begun(await waitingOperation(caller))
  await ended(worker, { status: 'Completed', outcome: '' })
  const key = keys.job(caller.organisationId, worker.id)
  await update(key, { set: keys.due(worker.id, now()) })
  later(1000)
  await sweep()
  const item = await get(key)
  expect([item?.['status'], item?.['duepk'], item?.['duesk']]).toEqual(['Completed', undefined, undefined])
})
