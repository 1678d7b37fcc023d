import { beforeEach, expect, test } from 'vitest'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { operationLeaseMs, renewLease } from '@platform/core/operations/operation'
import { sweep } from '@platform/core/background/sweep'
import { justBefore } from '../../support/store-calls.ts'
import { callerOf, started } from '../../support/world.ts'
import { takeMessages } from '../support/messages.ts'
import { begun, ended, waitingOperation } from '../support/operations.ts'
import { later, minute } from '../support/told.ts'

await started()
beforeEach(async () => void (await takeMessages(config.PLAT_QUEUE_UPDATES)))

test('the sweep announces an operation again until somebody begins it, and once its worker is silent', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  const announced = async () => {
    const messages = await takeMessages(config.PLAT_QUEUE_UPDATES)
    return messages.filter((message) => (message as { jobId?: string }).jobId === operation.id).length
  }
  await sweep()
  expect(await announced()).toBe(0)
  later(2 * minute)
  await sweep()
  await sweep()
  expect(await announced()).toBe(1)
  let worker = await begun(operation)
  for (let beat = 0; beat < 3; beat++) {
    later(operationLeaseMs - 1000)
    worker = await renewLease(worker)
    await sweep()
  }
  expect(await announced()).toBe(0)
  later(operationLeaseMs)
  await sweep()
  expect(await announced()).toBe(1)
  worker = await begun(operation)
  await ended(worker, { status: 'Completed', outcome: '' })
  later(10 * minute)
  await sweep()
  expect(await announced()).toBe(0)
})

test('an operation that is begun while the sweep looks for it is left to its worker', async () => {
  const caller = await callerOf()
  const operation = await waitingOperation(caller)
  later(2 * minute)
  const happened = justBefore(/BatchGet/, () => begun(operation))
  await sweep()
  expect(happened()).toBe(true)
  const messages = await takeMessages(config.PLAT_QUEUE_UPDATES)
  expect(messages.filter((message) => (message as { jobId?: string }).jobId === operation.id)).toEqual([])
})

test('an operation that ends while the sweep looks at it is not due any more', async () => {
  const caller = await callerOf()
  const worker = await begun(await waitingOperation(caller))
  later(operationLeaseMs + 1)
  const happened = justBefore(/TransactWrite/, () => ended(worker, { status: 'Completed', outcome: '' }))
  await sweep()
  expect(happened()).toBe(true)
  const item = await get(keys.job(caller.organisationId, worker.id))
  expect([item?.['status'], item?.['duepk']]).toEqual(['Completed', undefined])
})
