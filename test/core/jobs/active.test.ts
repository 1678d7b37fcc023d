import { expect, test } from 'vitest'
import { isAnyJobRunning } from '@platform/core/jobs/active'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/remove-all'
import { batchPut, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { callsOf } from '../../support/store-calls.ts'
import { jobOf } from '../support/bare-job.ts'

/** Organisations that were made one after the other, by their ids. */
async function makeOrganisations(count: number): Promise<string[]> {
  await removeAll(keys.organisation(''))
  const ids = Array.from({ length: count }, (_, index) => newId('org', 1_700_000_000_000 + index))
  await batchPut(ids.map((id) => ({ ...keys.organisation(id), id })))
  return ids
}

test('a job that runs in any of many organisations is seen, in the last of them as well', async () => {
  const ids = await makeOrganisations(1100)
  expect(await isAnyJobRunning()).toBe(false)
  const last = keys.jobTotals(ids.at(-1) ?? '')
  await transact([upsert(last, { set: { Queued: 5, Completed: 3, Running: 0 } })])
  expect(await isAnyJobRunning()).toBe(false)
  const organisationId = ids.at(-1) ?? ''
  const running = await jobOf(organisationId, 'Running')
  await transact([upsert(last, { set: { Running: 1 } })])
  expect(await isAnyJobRunning()).toBe(true)
  expect(await callsOf(isAnyJobRunning)).toBe(15)
  await transact([upsert(running, { set: { status: 'Completed' } })])
  expect(await isAnyJobRunning()).toBe(false)
})

test('a job that has just ended is not taken for a running one, although the totals count it still', async () => {
  const [organisationId = ''] = await makeOrganisations(1)
  await transact([upsert(keys.jobTotals(organisationId), { set: { Running: 1 } })])
  await jobOf(organisationId, 'Completed')
  expect(await isAnyJobRunning()).toBe(false)
})

test('where there are so many organisations that they cannot all be asked, some job runs', async () => {
  await makeOrganisations(1100)
  expect(await isAnyJobRunning(1000)).toBe(true)
  expect(await isAnyJobRunning(2000)).toBe(false)
})

test('a platform without organisations has no jobs', async () => {
  await makeOrganisations(0)
  expect(await isAnyJobRunning()).toBe(false)
})
