import { readSecret } from '@platform/core/aws/secrets'
import { now, nowSeconds } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, update, upsert } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId, sha256 } from '@platform/core/id'
import { isAnyJobRunning } from '@platform/core/jobs/active'
import { claim, findOwnJob, firstCheckOf, nextCheckWhileRunning, renewLease } from '@platform/core/jobs/claim'
import * as Batch from '@platform/core/jobs/batches/batch'
import { jobIdOf, newBatchId } from '@platform/core/jobs/batches/id'
import * as Job from '@platform/core/jobs/job'
import { payloadText } from '@platform/core/jobs/record'
import { recordStart } from '@platform/core/jobs/recording'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { compactVerify, importJWK } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrolledCluster,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
} from '../../support/fixtures.ts'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import { runBefore } from '../support/interleaving.ts'
import {
  allWaiting,
  dispatchedJob,
  readInboxItems,
  readJobCounters,
  runJob,
  runningJob,
  scriptJob,
  storeJob,
  waitingJob,
} from '../support/jobs.ts'
import { readPendingEvents, readPendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

beforeAll(bootstrapPlatform)

test('lists the first waiting jobs in the record of the cluster, and the others in the inbox, in order', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const jobIds: string[] = []
  while (jobIds.length < 8) jobIds.push(await dispatchedJob(caller, enrolled))
  const cluster = async () => (await Cluster.find(caller.organisationId, enrolled.cluster.id)) ?? expect.fail()
  expect([[...(await cluster()).listedJobs].toSorted(), await readInboxItems(enrolled.cluster.id)]).toEqual([
    jobIds.slice(0, 6),
    jobIds.slice(6),
  ])
  await Job.cancel(caller, jobIds[0]!)
  await claim(enrolled.request(), jobIds[7]!, undefined)
  // The new job comes after an older one that waits in the inbox.
  jobIds.push(await dispatchedJob(caller, enrolled))
  expect((await allWaiting(await cluster())).slice(0, 7)).toEqual([...jobIds.slice(1, 7), jobIds[8]])
  expect(await readJobCounters(caller, enrolled)).toEqual([8, 7])
  for (const jobId of (await allWaiting(await cluster())).toReversed()) await Job.cancel(caller, jobId)
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 0])
  expect(await readInboxItems(enrolled.cluster.id)).toEqual([])
})

test('a claim leases the job for ten minutes and returns a statement about job, cluster and payload', async () => {
  const { enrolled, jobId, record, key } = await waitingJob()
  const startedMs = now()
  const lease = await claim(enrolled.request(), jobId, 'key')
  const leasedMs = Date.parse(lease.leaseExpiresAt) - startedMs
  expect(leasedMs).toBeGreaterThanOrEqual(600_000)
  expect(leasedMs).toBeLessThan(630_000)
  const { current } = JSON.parse((await readSecret(`${config.PLAT_SECRET_KEYS_PREFIX}/statement-keys`)) ?? '')
  const publicKey = await importJWK({ kty: 'OKP', crv: 'Ed25519', x: current.jwk.x }, 'EdDSA')
  const { payload, protectedHeader } = await compactVerify(lease.statement, publicKey)
  expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'job-statement+jws', kid: current.kid })
  const claims = JSON.parse(new TextDecoder().decode(payload))
  expect(claims).toEqual({
    jobId,
    clusterId: enrolled.cluster.id,
    payloadSha256: sha256(payloadText(await record(), undefined) ?? ''),
    iat: claims.iat,
    exp: claims.iat + 600,
  })
  expect(Math.abs(claims.iat - nowSeconds())).toBeLessThan(30)
  expect(await record()).toMatchObject({ status: 'Running', leaseId: lease.leaseId, claimKey: 'key' })
  // The first check of the job is early enough, so the claim keeps it.
  const firstCheckMs = keys.dueMsOf(String((await get(key))?.['duesk']))
  expect(firstCheckMs).toBe(firstCheckOf(await record(), (await record()).createdAtMs))
  expect(firstCheckMs).toBeLessThanOrEqual(nextCheckWhileRunning(await record(), 0))
  expect(await readInboxItems(enrolled.cluster.id)).toEqual([])
})

test('the start of a claimed job has an event and a status transition', async () => {
  const { caller, enrolled, jobId, record } = await waitingJob()
  await claim(enrolled.request(), jobId, undefined)
  await recordStart(await record())
  const data = { jobId, clusterId: enrolled.cluster.id, relayId: enrolled.relay.relayId, type: 'InvokeScript' }
  expect(await readPendingEvents(caller, 'job.started')).toMatchObject([{ subject: jobId, data }])
  const records = await readPendingRecords(caller.organisationId)
  const transitions = records.flatMap((record) => record.transitions).map(({ from, to }) => [from, to])
  expect(transitions).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
  ])
})

test('one of several concurrent claims succeeds, and may be repeated with its key', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const claimWith = (key: string | undefined) => claim(enrolled.request(), jobId, key)
  const codes = await Promise.all(Array.from({ length: 6 }, (_, index) => errorCodeOf(claimWith(`key-${index}`))))
  expect(codes.filter((code) => code === 'no error')).toHaveLength(1)
  expect(codes.filter((code) => code === 'job_not_claimable')).toHaveLength(5)
  const key = `key-${codes.indexOf('no error')}`
  const [first, second] = await Promise.all([claimWith(key), claimWith(key)])
  const { leaseId, payload, leaseExpiresAt } = first
  expect(second).toMatchObject({ leaseId, payload, leaseExpiresAt })
  expect(payload).toEqual({ script: 'echo hello' })
  for (const other of ['other', '', undefined]) await expectError(claimWith(other), 'job_not_claimable')
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 0])
})

test('a relay that does not know the statement key claims no job, but may repeat a claim', async () => {
  const { enrolled, jobId, record } = await waitingJob()
  const claimAs = (statementKey: string) => claim(enrolled.request(), jobId, 'key', { statementKey })
  await expectError(claimAs('unknown'), 'statement_key_unknown')
  expect((await record()).status).toBe('Queued')
  const { leaseId } = await claim(enrolled.request(), jobId, 'key')
  expect(await claimAs('unknown')).toMatchObject({ leaseId })
})

test.each([
  ['of another relay', { set: { relayId: newId('relay') } }],
  ['that has ended', { set: { status: 'Completed' } }],
  ['without a lease', { remove: ['leaseId'] }],
])('a claim %s cannot be repeated', async (_, change) => {
  const { caller, enrolled, jobId, key } = await waitingJob()
  await claim(enrolled.request(), jobId, 'key')
  await update(key, change)
  await expectError(claim(enrolled.request(), jobId, 'key'), 'job_not_claimable')
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 0])
})

test.each([
  ['cancelled', () => ({ set: { status: 'Cancelled' } })],
  ['throttled', () => ({ set: { isThrottled: true } })],
  ['expired', () => ({ set: { expiresAtMs: now() - 1 } })],
])('rejects a claim of a job that is %s, without a write', async (_, changeOf) => {
  const { enrolled, jobId, key } = await waitingJob()
  await update(key, changeOf())
  const { usage, result } = await measureUsage(() => errorCodeOf(claim(enrolled.request(), jobId, 'key')))
  expect([result, usage.calls]).toEqual(['job_not_claimable', ['BatchGetItem']])
})

test('limits the idempotency key of a claim to 200 characters', async () => {
  const { enrolled, jobId } = await waitingJob()
  const message = 'must be at most 200 characters'
  const detail = { in: 'header', path: '/idempotency-key', code: 'too_big', message }
  await expect(claim(enrolled.request(), jobId, 'x'.repeat(201))).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [detail] },
  })
  expect(await claim(enrolled.request(), jobId, 'x'.repeat(200))).toHaveProperty('leaseId')
})

type Waiting = Awaited<ReturnType<typeof waitingJob>>

test.each([
  ['is cancelled', ({ caller, jobId }: Waiting) => Job.cancel(caller, jobId), 'job_not_claimable'],
  ['is claimed', ({ enrolled, jobId }: Waiting) => claim(enrolled.request(), jobId, 'first'), 'job_not_claimable'],
  [
    'gets another relay',
    async ({ caller, enrolled }: Waiting) =>
      enroll(enrollRequest((await issue(caller, enrolled.cluster.id)).enrollmentToken)),
    'relay_revoked',
  ],
] as const)('rejects a claim of a job that concurrently %s', async (_, change, code) => {
  const job = await waitingJob()
  runBefore(/^TransactWrite/, () => Promise.resolve(change(job)))
  await expectError(claim(job.enrolled.request(), job.jobId, 'key'), code)
  expect((await job.record()).claimKey).not.toBe('key')
})

test('a relay finds jobs of its own cluster only, and reads payloads only for claims', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const otherCluster = await enrolledCluster(caller)
  for (const id of [newId('job'), 'job', '', 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa']) {
    await expectError(findOwnJob(enrolled.request(), id), 'job_not_found')
  }
  await expectError(findOwnJob(otherCluster.request(), jobId), 'job_not_found')
  await expectError(findOwnJob({ ...enrolled.request(), clusterId: newId('clus') }, jobId), 'relay_revoked')
  const lookup = await measureUsage(() => findOwnJob(enrolled.request(), jobId))
  expect(lookup.result.id).toBe(jobId)
  const { usage } = await measureUsage(() => claim(enrolled.request(), jobId, 'key'))
  expect(usage.readUnits).toBeGreaterThan(lookup.usage.readUnits)
})

test('renews a lease after a quarter of its time, unless the job has another lease or has ended', async () => {
  const { record, key } = await runningJob()
  await recordStart(await record())
  const countWrites = async () => (await measureUsage(async () => renewLease(await record()))).usage.calls.length - 1
  const renewedAtMs = async () => (await record()).leaseRenewedAtMs
  const claimedAtMs = await renewedAtMs()
  advanceClock(140_000)
  expect(await countWrites()).toBe(0)
  advanceClock(11_000)
  expect([await countWrites(), await countWrites()]).toEqual([1, 0])
  const lastMs = await renewedAtMs()
  expect(lastMs - claimedAtMs).toBeGreaterThanOrEqual(150_000)
  advanceClock(151_000)
  const job = await record()
  for (const set of [{ leaseId: newId('lease') }, { status: 'Completed', leaseId: job.leaseId }]) {
    await update(key, { set })
    await renewLease(job)
    expect(await renewedAtMs()).toBe(lastMs)
  }
})

test('the next check of a running job is at its time limit, lease end or cancellation timeout', () => {
  const job = { startedAtMs: 1_000_000, timeoutSeconds: 100, leaseRenewedAtMs: 2_000_000 }
  // A minute after the time limit, at which the relay ends the job.
  expect(nextCheckWhileRunning(job, 0)).toBe(1_160_000)
  expect(nextCheckWhileRunning({ ...job, timeoutSeconds: 10_000 }, 0)).toBe(2_620_000)
  expect(nextCheckWhileRunning({ ...job, cancelRequestedAtMs: 1_100_000 }, 7000)).toBe(1_107_000)
  expect(nextCheckWhileRunning({ ...job, cancelRequestedAtMs: 1_100_000 }, 70_000)).toBe(1_160_000)
  expect(nextCheckWhileRunning({ timeoutSeconds: 100, leaseRenewedAtMs: 2_000_000 }, 0)).toBe(160_000)
})

const unknownCluster = { clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }
const manyTargets = { payload: { script: 'x', targetNodeIds: Array<string>(5000).fill('x'.repeat(40)) } }
const foreignNode = { payload: { script: 'x', targetNodeIds: ['node_x'] } }
test.each([
  ['an unknown type', { type: 'Nope', payload: {} }, 'unknown_job_type'],
  ['an operation type', { type: 'ModuleInstall', payload: {} }, 'job_type_not_submittable'],
  ['no script', { payload: {} }, 'validation_failed'],
  ['a script with NUL', { payload: { script: 'a\0b' } }, 'validation_failed'],
  ['a script above the limit', { payload: { script: 'ä'.repeat(131_073) } }, 'validation_failed'],
  ['a payload above the limit', manyTargets, 'payload_too_large'],
  ['a node of another cluster', foreignNode, 'node_not_in_cluster'],
  ['an unknown cluster', unknownCluster, 'cluster_not_found'],
  ['an unknown cluster and target nodes', { ...unknownCluster, ...foreignNode }, 'cluster_not_found'],
  ['a malformed cluster id', { clusterId: '#' }, 'cluster_not_found'],
])('rejects a job with %s without a change', async (_, change, code) => {
  const { caller, enrolled } = await callerWithCluster()
  await expectError(Job.submit(caller, { ...scriptJob(enrolled.cluster.id), ...change }), code)
  expect(await readJobCounters(caller, enrolled)).toEqual([0, 0])
})

const kibibytes256 = 262_144
test.each([
  ['quotes', '"\\'.repeat(kibibytes256 / 2)],
  ['line ends', '\r\n'.repeat(kibibytes256 / 2)],
  ['control characters', '\u0001\u0007\u001b\u001f'.repeat(kibibytes256 / 4)],
  ['four-byte characters', '🎉'.repeat(kibibytes256 / 4)],
])('accepts a script of 256 KiB of %s, alone and in a batch', async (_, script) => {
  const { caller, enrolled } = await callerWithCluster()
  const submission = { ...scriptJob(enrolled.cluster.id), payload: { script } }
  const { id } = await Job.submit(caller, submission)
  const { jobIds } = await Batch.submit(caller, { jobs: [submission] })
  for (const jobId of [id, ...jobIds]) expect((await Job.read(caller, jobId)).payload).toEqual({ script })
  expect((await claim(enrolled.request(), id, undefined)).payload).toEqual({ script })
})

test('of a job submission and a concurrent removal of its cluster, exactly one succeeds', async () => {
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
  const idempotency = { organisationId, key: newId('job'), fingerprint: 'one', status: 202 }
  const submit = () => Job.submit({ ...caller, idempotency }, scriptJob(clusterId))
  const { result: response, usage } = await measureUsage(submit)
  const { id: jobId, createdAt } = response
  expect(usage.calls).toEqual(['TransactWriteItems', 'SendMessage'])
  expect(response).toEqual({ id: jobId, clusterId, type: 'InvokeScript', status: 'Queued', createdAt })
  expect(await findStoredResponse(caller, idempotency)).toEqual({ status: 202, body: response })
  expect([...((await Cluster.find(organisationId, clusterId))?.listedJobs ?? [])]).toEqual([jobId])
  expect(await readJobCounters(caller, enrolled)).toEqual([1, 1])
  const record = (await readPendingRecords(organisationId)).find(({ audit }) => audit?.resource === jobId)
  expect(record?.audit).toMatchObject({
    action: 'job.submit',
    detail: expect.stringMatching(`^${clusterId}, script SHA-256 \\w{64} `),
  })
  expect(record?.events).toMatchObject([{ name: 'job.queued', subject: jobId }])
})

async function storeOrganisations(count: number): Promise<string[]> {
  await removeAll(keys.organisation(''))
  const ids = Array.from({ length: count }, (_, index) => newId('org', 1_700_000_000_000 + index))
  await batchPut(ids.map((id) => ({ ...keys.organisation(id), id })))
  return ids
}

test('finds a running job in the last of many organisations, and assumes one if there are too many to check', async () => {
  const ids = await storeOrganisations(1100)
  expect([await isAnyJobRunning(), await isAnyJobRunning(2000)]).toEqual([false, false])
  expect(await isAnyJobRunning(1000)).toBe(true)
  const organisationId = ids.at(-1) ?? ''
  const totals = keys.organisationCounts(organisationId)
  await transact([upsert(totals, { set: { Queued: 5, Completed: 3, Running: 0 } })])
  expect(await isAnyJobRunning()).toBe(false)
  const job = await storeJob(organisationId, 'Running')
  await transact([upsert(totals, { set: { Running: 1 } })])
  expect(await isAnyJobRunning()).toBe(true)
  expect(await countStoreCalls(isAnyJobRunning)).toBe(27)
  await transact([upsert(job, { set: { status: 'Completed' } })])
  expect(await isAnyJobRunning()).toBe(false)
})

test('reads the first jobs of a long queue; beyond them the totals decide', async () => {
  const [organisationId = ''] = await storeOrganisations(1)
  const ids = Array.from({ length: 1001 }, () => newId('job'))
  const [oldestId = ''] = ids.toSorted()
  const index = keys.jobStatusIndexKey({ organisationId }, 'Queued')
  await batchPut(ids.map((id) => ({ ...keys.job(organisationId, id), id, status: 'Queued', ...index })))
  const totals = keys.organisationCounts(organisationId)
  await transact([upsert(totals, { set: { Queued: 1001 } })])
  expect(await isAnyJobRunning()).toBe(false)
  await transact([upsert(keys.job(organisationId, oldestId), { set: { status: 'Running' } })])
  expect(await isAnyJobRunning()).toBe(true)
  await transact([upsert(keys.job(organisationId, oldestId), { set: { status: 'Queued' } })])
  await transact([upsert(totals, { set: { Running: 1 } })])
  expect(await isAnyJobRunning()).toBe(true)
})

test('finds a running job of a batch', async () => {
  const [organisationId = ''] = await storeOrganisations(1)
  await transact([upsert(keys.organisationCounts(organisationId), { set: { Queued: 1 } })])
  const batchId = newBatchId()
  const jobKey = keys.job(organisationId, jobIdOf(batchId, 3))
  const indexKey = { gsi3pk: keys.unfinishedBatchesOf(organisationId) }
  await batchPut([
    { ...keys.batch(organisationId, batchId), id: batchId, ...indexKey },
    { ...jobKey, id: jobIdOf(batchId, 3), status: 'Queued' },
  ])
  expect(await isAnyJobRunning()).toBe(false)
  await transact([upsert(jobKey, { set: { status: 'Running' } })])
  expect(await isAnyJobRunning()).toBe(true)
})

test('ignores an ended job that the totals still count as running', async () => {
  const [organisationId = ''] = await storeOrganisations(1)
  await transact([upsert(keys.organisationCounts(organisationId), { set: { Running: 1 } })])
  await storeJob(organisationId, 'Completed')
  expect(await isAnyJobRunning()).toBe(false)
  await storeOrganisations(0)
  expect(await isAnyJobRunning()).toBe(false)
})
