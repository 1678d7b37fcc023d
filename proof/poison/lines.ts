import * as Batch from '@platform/core/jobs/batches/batch'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { handler as batchesConsumer } from '../../functions/queue/batches.ts'
import { handler as buriedBatches } from '../../functions/queue/batches-dead-letter.ts'
import { handler as eventsConsumer } from '../../functions/queue/events.ts'
import { handler as jobsConsumer } from '../../functions/queue/jobs.ts'
import { handler as buriedJobs } from '../../functions/queue/jobs-dead-letter.ts'
import { countersOf, manyClusters, rowsOf } from '../../test/core/support/batches.ts'
import { done, entriesOf, settle, tell, waitingRecords } from '../../test/core/support/books.ts'
import { inboxOf, script } from '../../test/core/support/jobs.ts'
import { callerOf } from '../../test/support/world.ts'
import { type Line } from './line.ts'

/** So many people, each of an organisation of its own. */
export const people = (count: number): Promise<Caller[]> => Promise.all(Array.from({ length: count }, () => callerOf()))

/** Whether somebody was told once of something that failed, after the books were kept. */
async function isToldOnce({ organisationId, userId }: Caller, resource: string): Promise<boolean> {
  await settle(organisationId)
  const { items } = await query({ pk: keys.feed(organisationId, userId, '').pk })
  const said = await Promise.all(items.map(({ sk }) => get(keys.notification(organisationId, String(sk)))))
  return said.filter((detail) => detail?.['resource'] === resource).length === 1
}

async function jobErrand(caller: Caller) {
  const { organisationId } = caller
  const clusterIds = await manyClusters(caller, 1)
  const [clusterId = ''] = clusterIds
  const { id } = await Job.submit(caller, script(clusterId))
  return {
    message: { organisationId, jobId: id },
    id,
    isDoneOnce: async () => {
      const [counted, inbox] = [await countersOf(caller, clusterIds), await inboxOf(clusterId)]
      return String(counted) === '1,1,1' && String(inbox) === id
    },
    hasFailedOnce: async () => {
      const { status, statusReason } = await Job.read(caller, id)
      const isCounted = String(await countersOf(caller, clusterIds)) === '0,0,1'
      return status === 'Failed' && statusReason === 'dead_lettered' && isCounted && (await isToldOnce(caller, id))
    },
  }
}

export const jobs: Line = {
  name: 'jobs',
  consumer: jobsConsumer,
  undertaker: buriedJobs,
  errands: async (count) => Promise.all((await people(count)).map(jobErrand)),
  doomed: async () => jobErrand(await callerOf()),
  deleted: async () => {
    const caller = await callerOf()
    const { id: clusterId } = await Cluster.register(caller, { name: 'gone', type: 'Hypervisor' })
    const { id } = await Job.submit(caller, script(clusterId))
    await Job.cancel(caller, id)
    await Cluster.remove(caller, clusterId)
    const isDoneOnce = async () => (await inboxOf(clusterId)).length === 0
    return { message: { organisationId: caller.organisationId, jobId: id }, id, isDoneOnce }
  },
}

async function batchErrand(caller: Caller) {
  const { organisationId } = caller
  const clusterIds = await manyClusters(caller, 2)
  const { batchId, jobIds } = await Batch.submit(caller, { jobs: clusterIds.map((id) => script(id)) })
  return {
    message: { organisationId, batchId },
    id: batchId,
    isDoneOnce: async () => {
      const counted = await countersOf(caller, clusterIds)
      return String(counted) === '1,1,1,1,1,1' && (await rowsOf(caller, jobIds)).length === jobIds.length
    },
    hasFailedOnce: async () => {
      await settle(organisationId)
      const rows = await rowsOf(caller, jobIds)
      const areFailed = rows.length === jobIds.length && rows.every((row) => row.statusReason === 'dead_lettered')
      const { status, counts } = await Batch.read(caller, batchId)
      const isCounted = status === 'Finished' && counts.failed === jobIds.length
      return areFailed && isCounted && (await isToldOnce(caller, batchId))
    },
  }
}

export const batches: Line = {
  name: 'batches',
  consumer: batchesConsumer,
  undertaker: buriedBatches,
  errands: async (count) => Promise.all((await people(count)).map(batchErrand)),
  doomed: async () => batchErrand(await callerOf()),
  deleted: async () => {
    const { organisationId } = await callerOf()
    const batchId = newId('batch')
    const isDoneOnce = async () => (await get(keys.batch(organisationId, batchId))) === undefined
    return { message: { organisationId, batchId }, id: batchId, isDoneOnce }
  },
}

async function bookErrand(caller: Caller) {
  const { organisationId } = caller
  await tell(caller, done('test.change'))
  const isDoneOnce = async () => {
    const entries = await entriesOf(caller)
    return entries.length === 1 && (await waitingRecords(organisationId)).length === 0
  }
  return { message: { organisationId }, id: organisationId, isDoneOnce }
}

export const events: Line = {
  name: 'events',
  consumer: eventsConsumer,
  errands: async (count) => Promise.all((await people(count)).map(bookErrand)),
  deleted: async () => {
    const organisationId = newId('org')
    const isDoneOnce = async () => (await waitingRecords(organisationId)).length === 0
    return { message: { organisationId }, id: organisationId, isDoneOnce }
  },
}
