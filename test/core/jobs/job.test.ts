import { outboxRetryMs } from '@platform/core/aws/queues'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { batchPut, get, upsert } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { isAnyJobRunning } from '@platform/core/jobs/active'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
import { append, readOutput } from '@platform/core/jobs/output'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  errorCodeOf,
  newCaller,
  expectError,
} from '../../support/fixtures.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import {
  completionReport,
  dispatchedJob,
  jobCounters,
  runningJob,
  scriptJob,
  storeJob,
  waitingJob,
} from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'
import { pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

test('a job is queued, found by a beat, claimed, and completed with its output', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const nodeId = enrolled.relay.nodes[0]?.id ?? ''
  const jobId = await dispatchedJob(caller, enrolled)
  expect((await heartbeat(enrolled.request(), enrolled.heartbeat)).response.jobs).toEqual([jobId])
  const { leaseId, payload, statement } = await claim(enrolled.request(), jobId, undefined)
  expect(payload).toEqual({ script: 'echo hello' })
  expect(statement.split('.')).toHaveLength(3)
  expect((await heartbeat(enrolled.request(), enrolled.heartbeat)).response.jobs).toEqual([])
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Running' })
  await append(enrolled.request(), jobId, { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'hel' })
  await append(enrolled.request(), jobId, { leaseId, seq: 1, nodeId, stream: 'stdout', data: 'lo\n' })
  expect(await readOutput(caller, jobId, 3)).toMatchObject({
    items: [{ offset: 3, data: 'lo\n' }],
    nextOffset: 6,
    finished: false,
  })
  expect(await readOutput(caller, jobId, 1)).toMatchObject({ items: [{ offset: 1, data: 'el' }, { offset: 3 }] })
  expect(await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))).toEqual({
    jobId,
    status: 'Completed',
  })
  expect(await readOutput(caller, jobId, 6)).toMatchObject({ items: [], nextOffset: 6, finished: true })
  expect(await Job.read(caller, jobId)).toMatchObject({
    status: 'Completed',
    result: {
      output: 'hello\n',
      exitCode: 0,
      truncated: false,
      totalBytes: 6,
      nodes: [{ nodeId, exitCode: 0, output: 'hello\n' }],
    },
  })
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test.each([
  ['an unknown type', { type: 'Nope', payload: {} }, 'unknown_job_type'],
  ['a type of the platform itself', { type: 'ModuleInstall', payload: {} }, 'job_type_not_submittable'],
  ['no script', { payload: {} }, 'validation_failed'],
  ['a script with NUL', { payload: { script: 'a\0b' } }, 'validation_failed'],
  ['too large a payload', { payload: { script: 'ä'.repeat(200_000) } }, 'payload_too_large'],
  ['a node of another cluster', { payload: { script: 'x', targetNodeIds: ['node_x'] } }, 'node_not_in_cluster'],
  ['an unknown cluster', { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }, 'cluster_not_found'],
  [
    'an unknown cluster with targets',
    { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa', payload: { script: 'x', targetNodeIds: ['node_x'] } },
    'cluster_not_found',
  ],
  ['no id at all', { clusterId: '#' }, 'cluster_not_found'],
])('a job with %s is refused and leaves nothing behind', async (_, change, code) => {
  const { caller, enrolled } = await callerWithCluster()
  await expectError(Job.submit(caller, { ...scriptJob(enrolled.cluster.id), ...change }), code)
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('a message that comes twice or at once puts a job into the inbox once', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { id } = await Job.submit(caller, scriptJob(enrolled.cluster.id))
  await Promise.all(Array.from({ length: 5 }, () => dispatch({ organisationId: caller.organisationId, jobId: id })))
  await dispatch({ organisationId: caller.organisationId, jobId: id })
  expect(await jobCounters(caller, enrolled)).toEqual([1, 1])
})

test('of many claims of one job one wins, and the winner may repeat its own', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const codes = await Promise.all(
    Array.from({ length: 6 }, (_, index) => errorCodeOf(claim(enrolled.request(), jobId, `key-${index}`))),
  )
  expect(codes.filter((code) => code === 'no error')).toHaveLength(1)
  expect(codes.filter((code) => code === 'job_not_claimable')).toHaveLength(5)
  const winner = `key-${codes.indexOf('no error')}`
  const again = await Promise.all([claim(enrolled.request(), jobId, winner), claim(enrolled.request(), jobId, winner)])
  expect(again[0]?.leaseId).toBe(again[1]?.leaseId)
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test.each([
  ['exited', 3, 'Failed', 'exit_nonzero'],
  ['timed_out', null, 'Failed', 'execution_timeout'],
  ['rejected', null, 'Failed', 'relay_rejected'],
  ['interrupted', null, 'Failed', 'interrupted'],
  ['cancelled', null, 'Failed', 'interrupted'],
] as const)(
  'a run that %s with exit code %s ends %s (%s), and repeating the report answers the same',
  async (outcome, exitCode, status, statusReason) => {
    const { caller, enrolled, jobId, leaseId } = await runningJob()
    const report = { ...completionReport(enrolled, leaseId, exitCode), outcome }
    const answers = await Promise.all([
      complete(enrolled.request(), jobId, report),
      complete(enrolled.request(), jobId, report),
    ])
    expect(answers).toEqual([
      { jobId, status },
      { jobId, status },
    ])
    expect(await Job.read(caller, jobId)).toMatchObject({ status, statusReason, result: { exitCode } })
    expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
    await expectError(Job.cancel(caller, jobId), 'job_already_finished')
  },
)

test('submitting and removing at the same moment leave either the job or no cluster, never an orphan', async () => {
  for (let round = 0; round < 20; round++) {
    const caller = await newCaller()
    const { id: clusterId } = await Cluster.register(caller, { name: 'contested', type: 'Hypervisor' })
    const [submitted, removed] = await Promise.all([
      errorCodeOf(Job.submit(caller, scriptJob(clusterId))),
      errorCodeOf(Cluster.remove(caller, clusterId)),
    ])
    const outcome = `${submitted} / ${removed}`
    expect(['no error / cluster_has_active_jobs', 'cluster_not_found / no error']).toContain(outcome)
  }
})

test('a job that ends while it is read has its result', async () => {
  const { caller, enrolled, jobId, leaseId } = await runningJob()
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId))
  const { sk } = keys.result(caller.organisationId, jobId)
  // The store reads the items of a batch one by one: the result was not there yet.
  using _ = onStoreCall({
    after: async ({ command }, answer) => {
      if (!command.startsWith('BatchGet')) return
      for (const [table, items] of Object.entries<any[]>(answer.Responses)) {
        answer.Responses[table] = items.filter((item) => item.sk !== sk)
      }
    },
  })
  expect(await Job.read(caller, jobId)).toMatchObject({ status: 'Completed', result: { exitCode: 0 } })
})

/** What a submission leaves, and whom it tells. */

test('a job that is accepted is announced once, is due if nobody hears of it, and stands in the trail', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const { cluster } = await enrolledCluster(caller)
  await Promise.all([receiveMessages(config.PLAT_QUEUE_JOBS), receiveMessages(config.PLAT_QUEUE_EVENTS)])
  const request = { key: newId('job'), fingerprint: 'one', status: 202 }
  const answer = await Job.submit({ ...caller, idempotency: request }, scriptJob(cluster.id))
  expect(answer).toEqual({
    id: expect.stringMatching(/^job_/),
    clusterId: cluster.id,
    type: 'InvokeScript',
    status: 'Queued',
    createdAt: expect.any(String),
  })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: answer })
  expect(await receiveMessages(config.PLAT_QUEUE_JOBS)).toEqual([{ organisationId, jobId: answer.id }])
  // The message about the job leads to the books as well.
  expect(await receiveMessages(config.PLAT_QUEUE_EVENTS)).toEqual([])
  const dueInMs = keys.dueTimeOf(String((await get(keys.job(organisationId, answer.id)))?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(outboxRetryMs - 20_000)
  expect(dueInMs).toBeLessThanOrEqual(outboxRetryMs)
  const record = (await pendingRecords(organisationId)).find(({ audit }) => audit?.resource === answer.id)
  expect(record?.audit).toMatchObject({ action: 'job.submit', detail: cluster.id })
  expect(record?.events).toMatchObject([{ name: 'job.queued', subject: answer.id }])
})

test('a job may name nodes of its cluster, and only those', async () => {
  const { caller, enrolled } = await callerWithCluster(['a', 'b'])
  const [first, second] = enrolled.relay.nodes.map(({ id }) => id)
  const submitted = (...targetNodeIds: unknown[]) =>
    Job.submit(caller, scriptJob(enrolled.cluster.id, { targetNodeIds }))
  const { id } = await submitted(first, second)
  expect(await Job.read(caller, id)).toMatchObject({ payload: { targetNodeIds: [first, second] } })
  await expectError(submitted(first, 'node_x'), 'node_not_in_cluster')
  await expectError(submitted('node_x', first), 'node_not_in_cluster')
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

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
  const running = await storeJob(organisationId, 'Running')
  await transact([upsert(last, { set: { Running: 1 } })])
  expect(await isAnyJobRunning()).toBe(true)
  expect(await countStoreCalls(isAnyJobRunning)).toBe(15)
  await transact([upsert(running, { set: { status: 'Completed' } })])
  expect(await isAnyJobRunning()).toBe(false)
})

test('a job that has just ended is not taken for a running one, although the totals count it still', async () => {
  const [organisationId = ''] = await makeOrganisations(1)
  await transact([upsert(keys.jobTotals(organisationId), { set: { Running: 1 } })])
  await storeJob(organisationId, 'Completed')
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
