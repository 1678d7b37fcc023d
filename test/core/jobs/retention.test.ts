import * as keys from '@platform/core/db/keys'
import { batchPut, get, queryAll } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { removeExpiredJobs } from '@platform/core/jobs/retention'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, newCaller } from '../../support/fixtures.ts'
import { advance, jobsForClusters, storeClusters, submitAndExpand } from '../support/batches.ts'

beforeAll(bootstrapPlatform)

test('a removal of expired jobs visits more organisations, and removes more jobs, than a query returns', async () => {
  const organisationIds = Array.from({ length: 30 }, () => newId('org')).toSorted()
  await batchPut(organisationIds.map((id) => ({ ...keys.organisation(id), id, jobRetentionDays: 1 })))
  const caller = await newCaller(organisationIds.at(-1))
  const { batchId } = await submitAndExpand(caller, { jobs: jobsForClusters(await storeClusters(caller, 1), 120) })
  await Batch.cancel(caller, batchId)
  await advance(caller, batchId)
  const readJobs = () => queryAll({ index: 'gsi2', pk: keys.organisationJobs(caller.organisationId) })
  expect(await readJobs()).toHaveLength(120)
  advanceClock(25 * 3_600_000)

  await removeExpiredJobs(60_000)
  expect(await readJobs()).toEqual([])
  expect(await get(keys.jobRetention())).not.toHaveProperty('after')
})
