import { outboxRetryMs } from '@platform/core/aws/queues'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, upsert } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { isAnyJobRunning } from '@platform/core/jobs/active'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import * as Job from '@platform/core/jobs/job'
import { append, readOutput } from '@platform/core/jobs/output'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import { completionReport, jobCounters, runJob, scriptJob, storeJob, waitingJob } from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

test('a job is queued, offered by a heartbeat, claimed, and completed with its output', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const offeredJobs = async () => (await heartbeat(enrolled.request(), enrolled.heartbeat)).response.jobs
  expect(await offeredJobs()).toEqual([jobId])
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  expect(await offeredJobs()).toEqual([])
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Running' })
  for (const [seq, data] of ['hel', 'lo\n'].entries()) {
    await append(enrolled.request(), jobId, { leaseId, seq, nodeId, stream: 'stdout', data })
  }
  const output = (offset: number) => readOutput(caller, jobId, offset)
  const items = [{ offset: 3, data: 'lo\n' }]
  expect(await output(3)).toMatchObject({ items, nextOffset: 6, finished: false })
  expect(await output(1)).toMatchObject({ items: [{ offset: 1, data: 'el' }, { offset: 3 }] })
  const response = await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  expect(response).toEqual({ jobId, status: 'Completed' })
  expect(await output(6)).toMatchObject({ items: [], nextOffset: 6, finished: true })
  const nodes = [{ nodeId, exitCode: 0, output: 'hello\n' }]
  expect(await Job.read(caller, jobId)).toMatchObject({
    status: 'Completed',
    result: { output: 'hello\n', exitCode: 0, truncated: false, totalBytes: 6, nodes },
  })
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

const unknownCluster = { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }
const foreignNode = { payload: { script: 'x', targetNodeIds: ['node_x'] } }
test.each([
  ['an unknown type', { type: 'Nope', payload: {} }, 'unknown_job_type'],
  ['an operation type', { type: 'ModuleInstall', payload: {} }, 'job_type_not_submittable'],
  ['no script', { payload: {} }, 'validation_failed'],
  ['a script with NUL', { payload: { script: 'a\0b' } }, 'validation_failed'],
  ['a payload above the limit', { payload: { script: 'ä'.repeat(200_000) } }, 'payload_too_large'],
  ['a node of another cluster', foreignNode, 'node_not_in_cluster'],
  ['an unknown cluster', unknownCluster, 'cluster_not_found'],
  ['an unknown cluster and target nodes', { ...unknownCluster, ...foreignNode }, 'cluster_not_found'],
  ['a malformed cluster id', { clusterId: '#' }, 'cluster_not_found'],
])('rejects a job with %s without a change', async (_, change, code) => {
  const { caller, enrolled } = await callerWithCluster()
  await expectError(Job.submit(caller, { ...scriptJob(enrolled.cluster.id), ...change }), code)
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('concurrent submission and removal of its cluster leave either the job or no cluster', async () => {
  for (let round = 0; round < 10; round++) {
    const caller = await newCaller()
    const { id: clusterId } = await Cluster.register(caller, { name: 'contested', type: 'Hypervisor' })
    const codes = await Promise.all([
      errorCodeOf(Job.submit(caller, scriptJob(clusterId))),
      errorCodeOf(Cluster.remove(caller, clusterId)),
    ])
    expect(['no error,cluster_has_active_jobs', 'cluster_not_found,no error']).toContain(codes.join())
  }
})

test('reads the result of a job that ends between the reads of its items', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  await runJob(enrolled, jobId)
  const { sk } = keys.result(caller.organisationId, jobId)
  // The batch read misses the result.
  using _ = onStoreCall({
    after: async ({ command }, output) => {
      if (!command.startsWith('BatchGet')) return
      for (const [table, items] of Object.entries<any[]>(output.Responses)) {
        output.Responses[table] = items.filter((item) => item.sk !== sk)
      }
    },
  })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { exitCode: 0 } })
})

test('submission stores the response, audit entry and event, and enqueues one message', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { organisationId } = caller
  const clusterId = enrolled.cluster.id
  await Promise.all([receiveMessages(config.PLAT_QUEUE_JOBS), receiveMessages(config.PLAT_QUEUE_EVENTS)])
  const idempotency = { key: newId('job'), fingerprint: 'one', status: 202 }
  const response = await Job.submit({ ...caller, idempotency }, scriptJob(clusterId))
  const { id: jobId, createdAt } = response
  expect(response).toEqual({ id: jobId, clusterId, type: 'InvokeScript', status: 'Queued', createdAt })
  expect(await findStoredResponse(caller, idempotency)).toEqual({ status: 202, body: response })
  expect(await receiveMessages(config.PLAT_QUEUE_JOBS)).toEqual([{ organisationId, jobId }])
  // The message about the job also leads to the projections.
  expect(await receiveMessages(config.PLAT_QUEUE_EVENTS)).toEqual([])
  const dueInMs = keys.dueTimeOf(String((await get(keys.job(organisationId, jobId)))?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(outboxRetryMs - 20_000)
  expect(dueInMs).toBeLessThanOrEqual(outboxRetryMs)
  const record = (await pendingRecords(organisationId)).find(({ audit }) => audit?.resource === jobId)
  expect(record?.audit).toMatchObject({ action: 'job.submit', detail: clusterId })
  expect(record?.events).toMatchObject([{ name: 'job.queued', subject: jobId }])
})

async function storeOrganisations(count: number): Promise<string[]> {
  await removeAll(keys.organisation(''))
  const ids = Array.from({ length: count }, (_, index) => newId('org', 1_700_000_000_000 + index))
  await batchPut(ids.map((id) => ({ ...keys.organisation(id), id })))
  return ids
}

test('finds a running job in the last of many organisations, and assumes one beyond the limit', async () => {
  const ids = await storeOrganisations(1100)
  expect([await isAnyJobRunning(), await isAnyJobRunning(1000), await isAnyJobRunning(2000)]).toEqual([
    false,
    true,
    false,
  ])
  const organisationId = ids.at(-1) ?? ''
  const totals = keys.jobTotals(organisationId)
  await transact([upsert(totals, { set: { Queued: 5, Completed: 3, Running: 0 } })])
  expect(await isAnyJobRunning()).toBe(false)
  const job = await storeJob(organisationId, 'Running')
  await transact([upsert(totals, { set: { Running: 1 } })])
  expect(await isAnyJobRunning()).toBe(true)
  expect(await countStoreCalls(isAnyJobRunning)).toBe(15)
  await transact([upsert(job, { set: { status: 'Completed' } })])
  expect(await isAnyJobRunning()).toBe(false)
})

test('ignores an ended job that the totals still count as running', async () => {
  const [organisationId = ''] = await storeOrganisations(1)
  await transact([upsert(keys.jobTotals(organisationId), { set: { Running: 1 } })])
  await storeJob(organisationId, 'Completed')
  expect(await isAnyJobRunning()).toBe(false)
  await storeOrganisations(0)
  expect(await isAnyJobRunning()).toBe(false)
})
