import * as Audit from '@platform/core/audit'
import { allBooks } from '@platform/core/all-books'
import * as Batch from '@platform/core/batch'
import { type Book, bookRecords } from '@platform/core/books'
import * as Cluster from '@platform/core/cluster'
import * as keys from '@platform/core/db/keys'
import { upsert } from '@platform/core/db/table'
import { sweep } from '@platform/core/sweep'
import * as Webhook from '@platform/core/webhook'
import { expect, test } from 'vitest'
import { callerOf, enrolledCluster, refusalOf, started } from '../support/world.ts'
import { book, expanded, jobsFor, tend } from './support/batches.ts'
import { runJob } from './support/jobs.ts'
import { done, settle, tell, waitingRecords, entriesOf } from './support/books.ts'
import { atStoreCalls } from './support/store-hook.ts'

test('P1 retry after one cluster was removed', async () => {
  await started()
  const caller = callerOf()
  const one = await enrolledCluster(caller)
  const two = await enrolledCluster(caller)
  const { batchId, jobIds } = await expanded(caller, { jobs: jobsFor([one.cluster.id, two.cluster.id]) })
  await runJob(one, jobIds[0]!, 1)
  await runJob(two, jobIds[1]!, 1)
  await book(caller)
  expect(await Batch.read(caller, batchId)).toMatchObject({ status: 'Finished' })
  await Cluster.remove(caller, one.cluster.id)
  console.log('retry before sweep:', await refusalOf(Batch.retry(caller, batchId)))
  await sweep()
  console.log('retry after sweep:', await refusalOf(Batch.retry(caller, batchId)))
})

test('P2 webhook patches at once', async () => {
  await started()
  const caller = callerOf()
  const hook = await Webhook.create(caller, { url: 'https://a.example.com/', events: ['*'] })
  // both have read before either writes
  let isFirst = true
  using _ = atStoreCalls({
    before: async ({ command }) => {
      if (command !== 'TransactWriteCommand' || !isFirst) return
      isFirst = false
      await Webhook.change(caller, hook.id, { enabled: false })
    },
  })
  await Webhook.change(caller, hook.id, { events: ['platform.job.*'] })
  const { items } = await Webhook.list(caller)
  console.log('P2', items[0])
})

test('P3 poison at the closing', async () => {
  const caller = callerOf()
  const { organisationId } = caller
  await tell(caller, done('test.change', 'poison'))
  await tell(caller, done('test.change', 'good'))
  const broken: Book = {
    name: 'broken',
    entries: async (_, records) =>
      records.some(({ audit }) => audit?.resource === 'poison')
        ? [upsert({ pk: 'X', sk: 'Y' }, { set: { big: 'x'.repeat(500_000) } })]
        : [],
  }
  console.log('P3', await refusalOf(bookRecords(organisationId, [...allBooks, broken])))
  console.log('P3', await refusalOf(bookRecords(organisationId, [...allBooks, broken])))
  console.log('P3 left', (await waitingRecords(organisationId)).length, (await entriesOf(caller)).length)
})

test('P5 from after to', async () => {
  const caller = callerOf()
  console.log('P5', await refusalOf(Audit.list(caller, { page: 1, pageSize: 20, actor: 'x', from: 2000, to: 1000 })))
  console.log('P5 unfiltered', await refusalOf(Audit.list(caller, { page: 1, pageSize: 20, from: 2000, to: 1000 })))
})
