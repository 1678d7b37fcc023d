import { beforeAll, expect, test } from 'vitest'
import { compactVerify, importJWK } from 'jose'
import { now, nowSeconds, shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { newId, sha256 } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { checkLease, claim, nextCheckWhileRunning, findOwnJob, renewLease } from '@platform/core/jobs/claim'
import { parseJob } from '@platform/core/jobs/record'
import { type RelayCaller } from '@platform/core/caller'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { readSecret } from '@platform/core/aws/secrets'
import { config } from '@platform/core/config'
import { justBefore } from '../../support/store-calls.ts'
import { callerOf, enrolledCluster, enrollRequest, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { counters, inboxOf, waitingJob } from '../support/jobs.ts'
import { used } from '../support/usage.ts'

/** What a claim leaves, who may make it, and how long it lasts. */

beforeAll(started)

async function waiting() {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const row = async () => parseJob((await get(keys.job(caller.organisationId, jobId)))!)
  return { caller, world, jobId, row, key: keys.job(caller.organisationId, jobId) }
}

test('a claim leases the job for ten minutes, with a statement about this job, this cluster, this payload', async () => {
  const { caller, world, jobId, row, key } = await waiting()
  const startedMs = now()
  const lease = await claim(world.request(), jobId, 'key')
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
    clusterId: world.cluster.id,
    payloadSha256: sha256(String(stored?.['payload'])),
    iat: claims.iat,
    exp: claims.iat + 600,
  })
  expect(Math.abs(claims.iat - nowSeconds())).toBeLessThan(30)
  expect(await row()).toMatchObject({ status: 'Running', leaseId: lease.leaseId, claimKey: 'key' })
  expect(keys.dueTimeOf(String((await get(key))?.['duesk']))).toBe(nextCheckWhileRunning(await row(), 0))
  expect(await inboxOf(world.cluster.id)).toEqual([])
})

test('a claim is told: who has begun what, and what it was before', async () => {
  const { caller, world, jobId } = await waiting()
  await claim(world.request(), jobId, undefined)
  const records = await waitingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events).filter(({ name }) => name === 'job.started')
  const data = { jobId, clusterId: world.cluster.id, relayId: world.relay.relayId, type: 'InvokeScript' }
  expect(events).toMatchObject([{ subject: jobId, data }])
  const moves = records.flatMap((record) => record.moves).map(({ from, to }) => [from, to])
  expect(moves).toEqual([
    [undefined, 'Queued'],
    ['Queued', 'Running'],
  ])
})

test('only who has the key of a claim may repeat it, and without a key nobody', async () => {
  const { world, jobId } = await waiting()
  const { leaseId, ...first } = await claim(world.request(), jobId, 'key')
  const again = await claim(world.request(), jobId, 'key')
  expect([again.leaseId, again.payload, again.leaseExpiresAt]).toEqual([leaseId, first.payload, first.leaseExpiresAt])
  for (const other of ['other', '', undefined]) {
    expect(await refusalOf(claim(world.request(), jobId, other))).toBe('job_not_claimable')
  }
  const keyless = await waiting()
  await claim(keyless.world.request(), keyless.jobId, undefined)
  expect(await refusalOf(claim(keyless.world.request(), keyless.jobId, undefined))).toBe('job_not_claimable')
})

test('a relay that came after another repeats no claim of that one', async () => {
  const { world, jobId, key } = await waiting()
  await claim(world.request(), jobId, 'key')
  await update(key, { set: { relayId: newId('relay') } })
  expect(await refusalOf(claim(world.request(), jobId, 'key'))).toBe('job_not_claimable')
})

test('a claim that is over is repeated by nobody', async () => {
  const { caller, world, jobId, key } = await waiting()
  await claim(world.request(), jobId, 'key')
  await update(key, { set: { status: 'Completed' } })
  expect(await refusalOf(claim(world.request(), jobId, 'key'))).toBe('job_not_claimable')
  await update(key, { set: { status: 'Running' }, remove: ['leaseId'] })
  expect(await refusalOf(claim(world.request(), jobId, 'key'))).toBe('job_not_claimable')
  expect(await counters(caller, world)).toEqual([1, 0])
})

test.each([
  ['that was cancelled', (key: keys.Key) => update(key, { set: { status: 'Cancelled' } })],
  ['that is in no inbox', (key: keys.Key) => update(key, { remove: ['dispatchedAtMs'] })],
  ['whose time to be delivered is over', (key: keys.Key) => update(key, { set: { expiresAtMs: now() - 1 } })],
])('a job %s cannot be claimed, and nothing is written', async (_, change) => {
  const { world, jobId, key } = await waiting()
  await change(key)
  const { usage, result } = await used(() => refusalOf(claim(world.request(), jobId, 'key')))
  expect([result, usage.calls]).toEqual(['job_not_claimable', ['BatchGetItem']])
})

test('the key of a claim is a text of two hundred letters at most', async () => {
  const { world, jobId } = await waiting()
  await expect(claim(world.request(), jobId, 'x'.repeat(201))).rejects.toMatchObject({
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
  expect(await claim(world.request(), jobId, 'x'.repeat(200))).toHaveProperty('leaseId')
})

test.each([
  ['is cancelled', async ({ caller, jobId }: Waiting) => Job.cancel(caller, jobId), 'job_not_claimable'],
  ['is claimed', async ({ world, jobId }: Waiting) => claim(world.request(), jobId, 'first'), 'job_not_claimable'],
  ['gets another relay', async ({ caller, world }: Waiting) => replaceRelay(caller, world), 'unauthenticated'],
] as const)('a job that %s while it is claimed is not claimed', async (_, meanwhile, refusal) => {
  const all = await waiting()
  const happened = justBefore(/^TransactWrite/, () => meanwhile(all))
  expect(await refusalOf(claim(all.world.request(), all.jobId, 'key'))).toBe(refusal)
  expect(happened()).toBe(true)
  expect((await all.row()).claimKey).not.toBe('key')
})

type Waiting = Awaited<ReturnType<typeof waiting>>

async function replaceRelay(caller: Waiting['caller'], { cluster }: Waiting['world']): Promise<void> {
  await enroll(enrollRequest((await issue(caller, cluster.id)).enrollmentToken))
}

test('a job of another cluster, of nobody, or of no name is not found, whoever asks', async () => {
  const { caller, world, jobId } = await waiting()
  const other = await enrolledCluster(caller)
  for (const id of [newId('job'), 'job', '', 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa']) {
    expect(await refusalOf(findOwnJob(world.request(), id))).toBe('job_not_found')
  }
  expect(await refusalOf(findOwnJob(other.request(), jobId))).toBe('job_not_found')
  const gone: RelayCaller = { ...world.request(), clusterId: newId('clus') }
  expect(await refusalOf(findOwnJob(gone, jobId))).toBe('unauthenticated')
  expect((await findOwnJob(world.request(), jobId)).id).toBe(jobId)
})

const readUnitsOf = async (work: () => Promise<unknown>): Promise<number> => (await used(work)).usage.readUnits

test('the payload of a job is read for its claim alone', async () => {
  const { world, jobId } = await waiting()
  const found = await readUnitsOf(() => findOwnJob(world.request(), jobId))
  expect(await readUnitsOf(() => claim(world.request(), jobId, 'key'))).toBeGreaterThan(found)
})

test('a lease is that of its job and of its relay', async () => {
  const { world, jobId } = await waiting()
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const job = await findOwnJob(world.request(), jobId)
  const heard = async (...[relayId, named]: [string, string]) =>
    refusalOf((async () => checkLease(job, { ...world.request(), relayId }, named))())
  expect(await heard(world.relay.relayId, leaseId)).toBe('nothing was refused')
  expect(await heard(world.relay.relayId, newId('lease'))).toBe('lease_not_held')
  expect(await heard(newId('relay'), leaseId)).toBe('lease_not_held')
})

test('a lease is renewed when a quarter of it has gone, and not before, nor once the job is another’s', async () => {
  const { world, jobId, row, key } = await waiting()
  await claim(world.request(), jobId, undefined)
  const callsOf = async () => (await used(async () => renewLease(await row()))).usage.calls.length - 1
  const { leaseRenewedAtMs: first } = await row()
  shiftClock(140_000)
  expect(await callsOf()).toBe(0)
  shiftClock(11_000)
  expect(await callsOf()).toBe(1)
  const { leaseRenewedAtMs: second } = await row()
  expect(second - first).toBeGreaterThanOrEqual(150_000)
  expect(await callsOf()).toBe(0)
  shiftClock(151_000)
  const read = await row()
  await update(key, { set: { leaseId: newId('lease') } })
  await renewLease(read)
  expect((await row()).leaseRenewedAtMs).toBe(second)
  await update(key, { set: { status: 'Completed', leaseId: read.leaseId } })
  await renewLease(read)
  expect((await row()).leaseRenewedAtMs).toBe(second)
  shiftClock(-302_000)
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
