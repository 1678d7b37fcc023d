import { readSecret } from '@platform/core/aws/secrets'
import type { RelayCaller } from '@platform/core/caller'
import { now, nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId, sha256 } from '@platform/core/id'
import { checkLease, claim, findOwnJob, nextCheckWhileRunning, renewLease } from '@platform/core/jobs/claim'
import { dispatch } from '@platform/core/jobs/dispatch'
import * as Job from '@platform/core/jobs/job'
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
} from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { dispatchedJob, inboxItems, jobCounters, scriptJob, waitingJob } from '../support/jobs.ts'
import { receiveMessages } from '../support/messages.ts'
import { pendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

/** From the message about a job into the inbox of its cluster. */

beforeAll(bootstrapPlatform)

async function submitted() {
  const { caller, enrolled } = await callerWithCluster()
  const { id: jobId } = await Job.submit(caller, scriptJob(enrolled.cluster.id))
  const { organisationId } = caller
  return { caller, enrolled, jobId, organisationId, reference: { organisationId, jobId } }
}

const callsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await measureUsage(work)).usage.calls.filter((call) => call !== 'SendMessage')

test('a job that waits goes into the inbox, and is due when it can no longer be delivered', async () => {
  const { caller, enrolled, jobId, organisationId, reference } = await submitted()
  await receiveMessages(config.PLAT_QUEUE_EVENTS)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem', 'TransactWriteItems'])
  expect(await inboxItems(enrolled.cluster.id)).toEqual([jobId])
  expect(await jobCounters(caller, enrolled)).toEqual([1, 1])
  const record = await get(keys.job(organisationId, jobId))
  expect(keys.dueTimeOf(String(record?.['duesk']))).toBe(record?.['expiresAtMs'])
  expect(record?.['dispatchedAtMs']).toEqual(expect.any(Number))
  // One message about a new job does for its record, too.
  expect(await receiveMessages(config.PLAT_QUEUE_EVENTS)).toContainEqual({ organisationId })
})

test('a message for a job that is not there, is over, runs, or was dispatched writes nothing', async () => {
  const { caller, enrolled, jobId, organisationId, reference } = await submitted()
  expect(await callsOf(() => dispatch({ organisationId, jobId: newId('job') }))).toEqual(['GetItem'])
  await dispatch(reference)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  await claim(enrolled.request(), jobId, undefined)
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  const over = await dispatchedJob(caller, enrolled)
  await Job.cancel(caller, over)
  await receiveMessages(config.PLAT_QUEUE_EVENTS)
  expect(await callsOf(() => dispatch({ organisationId, jobId: over }))).toEqual(['GetItem'])
  expect(await receiveMessages(config.PLAT_QUEUE_EVENTS)).toEqual([])
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
})

test('a job that its batch holds back is not dispatched, and neither is one that runs without having been', async () => {
  const { enrolled, jobId, organisationId, reference } = await submitted()
  await update(keys.job(organisationId, jobId), { set: { isThrottled: true } })
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  await update(keys.job(organisationId, jobId), { set: { status: 'Running' }, remove: ['isThrottled'] })
  expect(await callsOf(() => dispatch(reference))).toEqual(['GetItem'])
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
})

test('a job that is cancelled while it is dispatched does not come into the inbox', async () => {
  const { caller, enrolled, jobId, reference } = await submitted()
  const isCancelled = beforeCommand(/^TransactWrite/, () => Job.cancel(caller, jobId))
  await dispatch(reference)
  expect(isCancelled()).toBe(true)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  expect(await jobCounters(caller, enrolled)).toEqual([0, 0])
})

test('a job that was dispatched and claimed meanwhile does not come into the inbox again', async () => {
  const { caller, enrolled, jobId, reference } = await submitted()
  const isClaimed = beforeCommand(/^TransactWrite/, async () => {
    await dispatch(reference)
    await claim(enrolled.request(), jobId, undefined)
  })
  await dispatch(reference)
  expect(isClaimed()).toBe(true)
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

/** What a claim leaves, who may make it, and how long it lasts. */

test('a claim leases the job for ten minutes, with a statement about this job, this cluster, this payload', async () => {
  const { caller, enrolled, jobId, record, key } = await waitingJob()
  const startedMs = now()
  const lease = await claim(enrolled.request(), jobId, 'key')
  const leasedMs = Date.parse(lease.leaseExpiresAt) - startedMs
  expect(leasedMs).toBeGreaterThanOrEqual(600_000)
  expect(leasedMs).toBeLessThan(630_000)
  const { statement: held } = JSON.parse((await readSecret(config.PLAT_SECRET_SIGNING_KEYS)) ?? '')
  const { payload, protectedHeader } = await compactVerify(
    lease.statement,
    await importJWK({ kty: 'OKP', crv: 'Ed25519', x: held[0].jwk.x }, 'EdDSA'),
  )
  expect(protectedHeader).toEqual({ alg: 'EdDSA', typ: 'job-statement+jws', kid: held[0].kid })
  const claims = JSON.parse(new TextDecoder().decode(payload))
  const stored = await get(keys.payload(caller.organisationId, jobId))
  expect(claims).toEqual({
    jobId,
    clusterId: enrolled.cluster.id,
    payloadSha256: sha256(String(stored?.['payload'])),
    iat: claims.iat,
    exp: claims.iat + 600,
  })
  expect(Math.abs(claims.iat - nowSeconds())).toBeLessThan(30)
  expect(await record()).toMatchObject({ status: 'Running', leaseId: lease.leaseId, claimKey: 'key' })
  expect(keys.dueTimeOf(String((await get(key))?.['duesk']))).toBe(nextCheckWhileRunning(await record(), 0))
  expect(await inboxItems(enrolled.cluster.id)).toEqual([])
})

test('a claim is told: who has begun what, and what it was before', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  await claim(enrolled.request(), jobId, undefined)
  const records = await pendingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events).filter(({ name }) => name === 'job.started')
  const data = { jobId, clusterId: enrolled.cluster.id, relayId: enrolled.relay.relayId, type: 'InvokeScript' }
  expect(events).toMatchObject([{ subject: jobId, data }])
  const moves = records.flatMap((record) => record.transitions).map(({ from, to }) => [from, to])
  expect(moves).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
  ])
})

test('only who has the key of a claim may repeat it, and without a key nobody', async () => {
  const { enrolled, jobId } = await waitingJob()
  const { leaseId, ...first } = await claim(enrolled.request(), jobId, 'key')
  const again = await claim(enrolled.request(), jobId, 'key')
  expect([again.leaseId, again.payload, again.leaseExpiresAt]).toEqual([leaseId, first.payload, first.leaseExpiresAt])
  for (const other of ['other', '', undefined]) {
    await expectError(claim(enrolled.request(), jobId, other), 'job_not_claimable')
  }
  const keyless = await waitingJob()
  await claim(keyless.enrolled.request(), keyless.jobId, undefined)
  await expectError(claim(keyless.enrolled.request(), keyless.jobId, undefined), 'job_not_claimable')
})

test('a relay that came after another repeats no claim of that one', async () => {
  const { enrolled, jobId, key } = await waitingJob()
  await claim(enrolled.request(), jobId, 'key')
  await update(key, { set: { relayId: newId('relay') } })
  await expectError(claim(enrolled.request(), jobId, 'key'), 'job_not_claimable')
})

test('a claim that is over is repeated by nobody', async () => {
  const { caller, enrolled, jobId, key } = await waitingJob()
  await claim(enrolled.request(), jobId, 'key')
  await update(key, { set: { status: 'Completed' } })
  await expectError(claim(enrolled.request(), jobId, 'key'), 'job_not_claimable')
  await update(key, { set: { status: 'Running' }, remove: ['leaseId'] })
  await expectError(claim(enrolled.request(), jobId, 'key'), 'job_not_claimable')
  expect(await jobCounters(caller, enrolled)).toEqual([1, 0])
})

test.each([
  ['that was cancelled', (key: keys.Key) => update(key, { set: { status: 'Cancelled' } })],
  ['that is in no inbox', (key: keys.Key) => update(key, { remove: ['dispatchedAtMs'] })],
  ['whose time to be delivered is over', (key: keys.Key) => update(key, { set: { expiresAtMs: now() - 1 } })],
])('a job %s cannot be claimed, and nothing is written', async (_, change) => {
  const { enrolled, jobId, key } = await waitingJob()
  await change(key)
  const { usage, result } = await measureUsage(() => errorCodeOf(claim(enrolled.request(), jobId, 'key')))
  expect([result, usage.calls]).toEqual(['job_not_claimable', ['BatchGetItem']])
})

test('the key of a claim is a text of two hundred letters at most', async () => {
  const { enrolled, jobId } = await waitingJob()
  await expect(claim(enrolled.request(), jobId, 'x'.repeat(201))).rejects.toMatchObject({
    code: 'validation_failed',
    extra: {
      details: [
        {
          in: 'header',
          path: '/idempotency-key',
          code: 'too_big',
          message: 'must be at most 200 characters',
        },
      ],
    },
  })
  expect(await claim(enrolled.request(), jobId, 'x'.repeat(200))).toHaveProperty('leaseId')
})

test.each([
  ['is cancelled', async ({ caller, jobId }: Waiting) => Job.cancel(caller, jobId), 'job_not_claimable'],
  [
    'is claimed',
    async ({ enrolled, jobId }: Waiting) => claim(enrolled.request(), jobId, 'first'),
    'job_not_claimable',
  ],
  ['gets another relay', async ({ caller, enrolled }: Waiting) => replaceRelay(caller, enrolled), 'unauthenticated'],
] as const)('a job that %s while it is claimed is not claimed', async (_, meanwhile, refusal) => {
  const all = await waitingJob()
  const happened = beforeCommand(/^TransactWrite/, () => meanwhile(all))
  await expectError(claim(all.enrolled.request(), all.jobId, 'key'), refusal)
  expect(happened()).toBe(true)
  expect((await all.record()).claimKey).not.toBe('key')
})

type Waiting = Awaited<ReturnType<typeof waitingJob>>

async function replaceRelay(caller: Waiting['caller'], { cluster }: Waiting['enrolled']): Promise<void> {
  await enroll(enrollRequest((await issue(caller, cluster.id)).enrollmentToken))
}

test('a job of another cluster, of nobody, or of no name is not found, whoever asks', async () => {
  const { caller, enrolled, jobId } = await waitingJob()
  const other = await enrolledCluster(caller)
  for (const id of [newId('job'), 'job', '', 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa']) {
    await expectError(findOwnJob(enrolled.request(), id), 'job_not_found')
  }
  await expectError(findOwnJob(other.request(), jobId), 'job_not_found')
  const gone: RelayCaller = { ...enrolled.request(), clusterId: newId('clus') }
  await expectError(findOwnJob(gone, jobId), 'unauthenticated')
  expect((await findOwnJob(enrolled.request(), jobId)).id).toBe(jobId)
})

const readUnitsOf = async (work: () => Promise<unknown>): Promise<number> => (await measureUsage(work)).usage.readUnits

test('the payload of a job is read for its claim alone', async () => {
  const { enrolled, jobId } = await waitingJob()
  const found = await readUnitsOf(() => findOwnJob(enrolled.request(), jobId))
  expect(await readUnitsOf(() => claim(enrolled.request(), jobId, 'key'))).toBeGreaterThan(found)
})

test('a lease is that of its job and of its relay', async () => {
  const { enrolled, jobId } = await waitingJob()
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  const job = await findOwnJob(enrolled.request(), jobId)
  const heard = async (...[relayId, named]: [string, string]) =>
    errorCodeOf((async () => checkLease(job, { ...enrolled.request(), relayId }, named))())
  expect(await heard(enrolled.relay.relayId, leaseId)).toBe('no error')
  expect(await heard(enrolled.relay.relayId, newId('lease'))).toBe('lease_not_held')
  expect(await heard(newId('relay'), leaseId)).toBe('lease_not_held')
})

test('a lease is renewed when a quarter of it has gone, and not before, nor once the job is another’s', async () => {
  const { enrolled, jobId, record, key } = await waitingJob()
  await claim(enrolled.request(), jobId, undefined)
  const callsOf = async () => (await measureUsage(async () => renewLease(await record()))).usage.calls.length - 1
  const { leaseRenewedAtMs: first } = await record()
  advanceClock(140_000)
  expect(await callsOf()).toBe(0)
  advanceClock(11_000)
  expect(await callsOf()).toBe(1)
  const { leaseRenewedAtMs: second } = await record()
  expect(second - first).toBeGreaterThanOrEqual(150_000)
  expect(await callsOf()).toBe(0)
  advanceClock(151_000)
  const read = await record()
  await update(key, { set: { leaseId: newId('lease') } })
  await renewLease(read)
  expect((await record()).leaseRenewedAtMs).toBe(second)
  await update(key, { set: { status: 'Completed', leaseId: read.leaseId } })
  await renewLease(read)
  expect((await record()).leaseRenewedAtMs).toBe(second)
})

test('a running job is looked at when it should have stopped, has run out of time, or lost its lease', () => {
  const job = { startedAtMs: 1_000_000, timeoutSeconds: 100, leaseRenewedAtMs: 2_000_000 }
  // A minute after its time limit, for the relay ends it itself.
  expect(nextCheckWhileRunning(job, 0)).toBe(1_160_000)
  expect(nextCheckWhileRunning({ ...job, timeoutSeconds: 10_000 }, 0)).toBe(2_600_000)
  expect(nextCheckWhileRunning({ ...job, cancelRequestedAtMs: 1_100_000 }, 7000)).toBe(1_107_000)
  expect(nextCheckWhileRunning({ ...job, cancelRequestedAtMs: 1_100_000 }, 70_000)).toBe(1_160_000)
  expect(nextCheckWhileRunning({ timeoutSeconds: 100, leaseRenewedAtMs: 2_000_000 }, 0)).toBe(160_000)
})
