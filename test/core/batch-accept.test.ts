import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import * as Batch from '@platform/core/batch'
import { batchIdOf } from '@platform/core/batch-id'
import * as Cluster from '@platform/core/cluster'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import * as Job from '@platform/core/job'
import { list } from '@platform/core/job-list'
import { readOutput } from '@platform/core/output'
import { callerOf, enrolledCluster, refusalOf, started } from '../support/world.ts'
import { jobsFor, manyClusters } from './support/batches.ts'
import { script } from './support/jobs.ts'
import { used } from './support/usage.ts'

beforeAll(started)

const sameScript = `#!/bin/sh\n${randomBytes(700).toString('base64')}`

const unknownCluster = 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'

/** Nothing of the organisation was written: no open batch, no record. */
const untouched = async (organisationId: string) => {
  const outbox = await query({ pk: keys.outbox(organisationId, '').pk })
  return (await get(keys.openBatches(organisationId))) === undefined && outbox.items.length === 0
}

test('500 jobs of 500 clusters are accepted in seven calls, three rounds and 75 write units', async () => {
  const caller = callerOf()
  const clusters = await manyClusters(caller, 500)
  const jobs = jobsFor(clusters, 500, { script: sameScript })
  expect(Buffer.byteLength(sameScript)).toBeGreaterThan(900)
  const { result, usage } = await used(() => Batch.submit(caller, { jobs }))
  expect(result.jobIds).toHaveLength(500)
  expect(usage.calls.toSorted()).toEqual([...Array(5).fill('BatchGetItem'), 'SendMessage', 'TransactWriteItems'])
  expect(usage.rounds).toBe(3)
  expect(usage.writeUnits).toBeLessThanOrEqual(75)
})
