import * as Batch from '@platform/core/jobs/batches/batch'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { query, remove, replace } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { beforeAll, expect, test } from 'vitest'
import { callerOf, enrolledCluster, started } from '../../../support/world.ts'
import { book, expanded, jobsFor } from '../../support/batches.ts'
import { inboxOf, runJob } from '../../support/jobs.ts'

beforeAll(started)

test('a batch finishes once, even where the start of a job reaches the books after the end of the last', async () => {
  const caller = await callerOf()
  const { pk } = keys.outbox(caller.organisationId, '')
  const world = await enrolledCluster(caller)
  const { batchId } = await expanded(caller, { jobs: jobsFor([world.cluster.id], 2) })
  await book(caller)
  for (const id of await inboxOf(world.cluster.id)) await runJob(world, id)

  const { items } = await query({ pk })
  const late = items.find(({ record }) => String(record).includes('"job.started"'))
  const { pk: _, sk, ...kept } = late ?? {}
  await transact([remove({ pk, sk: String(sk) })])
  await book(caller)
  const finished = await Batch.read(caller, batchId)
  expect(finished).toMatchObject({ status: 'Finished', counts: { running: 0, completed: 2 } })

  shiftClock(1000)
  await transact([replace({ pk, sk: String(sk) }, kept)])
  await book(caller)
  expect(await Batch.read(caller, batchId)).toEqual(finished)
})
