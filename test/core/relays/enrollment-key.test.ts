import { randomUUID } from 'node:crypto'
import * as ApiToken from '@platform/core/accounts/api-token'
import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { batchPut, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { claim, findOwnJob } from '@platform/core/jobs/claim'
import * as Job from '@platform/core/jobs/job'
import { approve } from '@platform/core/relays/approve'
import { enrollRelay, namesFor } from '@platform/core/relays/enroll-with-key'
import { issue } from '@platform/core/relays/enrollment'
import * as EnrollmentKey from '@platform/core/relays/enrollment-key'
import { goodbye, heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
  requestErrorCode,
} from '../../support/fixtures.ts'
import { runProjections } from '../support/batches.ts'
import { runBefore } from '../support/interleaving.ts'
import { scriptJob } from '../support/jobs.ts'
import { listNotifications } from '../support/notifications.ts'
import { readAuditEntries } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const newKey = (caller: Caller, settings: object = {}) =>
  EnrollmentKey.create(caller, {
    name: 'edge',
    maxUses: 5,
    expiresAt: new Date(now() + 86_400_000).toISOString(),
    ...settings,
  })

function requestWith(enrollmentKey: string, hostname = 'box', nodes?: string[]) {
  const { enrollmentToken: _, ...request } = enrollRequest('', nodes)
  return { ...request, enrollmentKey, hostname }
}

const enrollByHttp = (request: object) => requestErrorCode('relay', 'POST /api/v1/relay/enroll', undefined, request)

const relayCaller = ({ organisationId }: Caller, { relayId, clusterId }: { relayId: string; clusterId: string }) => ({
  kind: 'relay' as const,
  relayId,
  organisationId,
  clusterId,
  tokenId: randomUUID(),
  issuedAtMs: now(),
})

const report = { nodes: [], running: [], freeSlots: 4, claimKey: 'claim-key-1' }
const onlyKey = async (caller: Caller) => (await EnrollmentKey.list(caller, { page: 1, pageSize: 10 })).items[0]

test('each enrollment creates a cluster; a repeat returns the same one, and a copied relay key is refused', async () => {
  const caller = await newCaller()
  const { enrollmentKey, id } = await newKey(caller, { nameTemplate: 'edge-{hostname}', labels: { env: 'prod' } })
  const request = requestWith(enrollmentKey, 'Box', ['a', 'b'])
  const firstRelay = await enrollRelay(request)
  const cluster = await Cluster.read(caller, firstRelay.clusterId)
  expect(cluster).toMatchObject({ name: 'edge-Box', status: 'Healthy', nodeCount: 2 })
  expect(cluster.labels).toMatchObject({ env: 'prod', 'platform/os': 'linux', 'platform/relay-version': '0.1.0' })
  expect(cluster.nodes.map(({ id: nodeId, name }) => ({ id: nodeId, name }))).toEqual(firstRelay.nodes)

  advanceClock(86_400_001)
  // The key has expired, but the enrollment has happened.
  expect(await enrollRelay(request)).toMatchObject({ clusterId: firstRelay.clusterId, relayId: firstRelay.relayId })
  await expectError(enrollRelay({ ...request, hostname: 'copy' }), 'enrollment_token_used')
  expect(await enrollByHttp(requestWith(enrollmentKey))).toBe('enrollment_key_expired')
  expect(await onlyKey(caller)).toMatchObject({ id, usedCount: 1, maxUses: 5 })
  await EnrollmentKey.revoke(caller, id)
  expect(await enrollRelay(request)).toMatchObject({ clusterId: firstRelay.clusterId, relayId: firstRelay.relayId })
  await expectError(EnrollmentKey.revoke(caller, id), 'enrollment_key_not_found')
  expect(await onlyKey(caller)).toBeUndefined()
  await runProjections(caller)
  const entries = await readAuditEntries(caller)
  expect(entries.map(({ action }) => action)).toEqual(expect.arrayContaining(['relay.enroll', 'relay.refuse']))
  const { items } = await listNotifications(caller)
  expect(items.filter(({ type }) => type === 'SecurityAlert')).toEqual([
    expect.objectContaining({ resource: firstRelay.clusterId, body: expect.stringContaining(id) }),
  ])
})

test('concurrent enrollments never exceed the uses, and their clusters have distinct names', async () => {
  const caller = await newCaller()
  const { enrollmentKey } = await newKey(caller, { maxUses: 3 })
  const codes = await Promise.all(Array.from({ length: 6 }, () => errorCodeOf(enrollRelay(requestWith(enrollmentKey)))))
  expect(codes.toSorted()).toEqual([
    ...Array.from({ length: 3 }, () => 'enrollment_key_used_up'),
    ...Array.from({ length: 3 }, () => 'no error'),
  ])
  expect(await enrollByHttp(requestWith(enrollmentKey))).toBe('enrollment_key_used_up')
  const { items } = await Cluster.list(caller, { page: 1, pageSize: 10 })
  expect(items.map(({ name }) => name).toSorted()).toEqual(['box', 'box-2', 'box-3'])

  const otherKey = await newKey(caller)
  const otherRequest = requestWith(otherKey.enrollmentKey)
  const answers = await Promise.all(Array.from({ length: 4 }, () => enrollRelay(otherRequest)))
  expect(new Set(answers.map(({ clusterId }) => clusterId)).size).toBe(1)
  expect(await onlyKey(caller)).toMatchObject({ usedCount: 1 })
})

test.each<[string, string, (caller: Caller, keyId: string) => Promise<unknown>]>([
  ['was revoked', 'enrollment_key_invalid', (caller, id) => EnrollmentKey.revoke(caller, id)],
  [
    'has a creator without the permission',
    'enrollment_key_invalid',
    (caller) => update(keys.user(caller.organisationId, caller.userId), { set: { roles: ['Viewer'] } }),
  ],
  [
    'has a suspended creator',
    'enrollment_key_invalid',
    (caller) => update(keys.user(caller.organisationId, caller.userId), { set: { suspendedAtMs: 1 } }),
  ],
  [
    'has a creator that was removed',
    'enrollment_key_invalid',
    (caller) => transact([remove(keys.user(caller.organisationId, caller.userId))]),
  ],
  [
    'belongs to an organisation at its quota',
    'limit_reached',
    ({ organisationId: id }) => batchPut([{ ...keys.organisation(id), id, quotas: { clusters: 0 } }]),
  ],
  [
    'has a site that was removed',
    'site_not_found',
    (_, id) => update(keys.enrollmentKey(id), { set: { siteId: newId('site') } }),
  ],
])('refuses a key that %s', async (_, code, change) => {
  const caller = await newCaller()
  const { enrollmentKey, id } = await newKey(caller)
  await change(caller, id)
  expect(await enrollByHttp(requestWith(enrollmentKey))).toBe(code)
  expect((await Cluster.list(caller, { page: 1, pageSize: 10 })).totalCount).toBe(0)
})

test('a key that was created with an API token ends with the token', async () => {
  const caller = await newCaller()
  const { id: tokenId } = await ApiToken.create(caller, { name: 'ci' })
  const { enrollmentKey } = await newKey({ ...caller, tokenId })
  await enrollRelay(requestWith(enrollmentKey))
  await ApiToken.remove(caller, tokenId)
  await expectError(enrollRelay(requestWith(enrollmentKey)), 'enrollment_key_invalid')
})

test.each<[string, (caller: Caller, keyId: string, tokenId: string) => Promise<unknown>]>([
  ['the key is revoked', (caller, id) => EnrollmentKey.revoke(caller, id)],
  ['its API token is removed', (_, _id, tokenId) => transact([remove(keys.apiToken(tokenId))])],
])('an enrollment fails if %s after its reads', async (_, change) => {
  const caller = await newCaller()
  const { id: tokenId } = await ApiToken.create(caller, { name: 'ci' })
  const { enrollmentKey, id } = await newKey({ ...caller, tokenId })
  runBefore(/^TransactWrite/, () => change(caller, id, tokenId))
  await expectError(enrollRelay(requestWith(enrollmentKey)), 'enrollment_key_invalid')
})

test('refuses malformed and foreign keys', async () => {
  const [caller, otherCaller] = [await newCaller(), await newCaller()]
  const { enrollmentKey, id } = await newKey(caller)
  for (const text of [
    'x',
    `${id}.wrong`,
    `${enrollmentKey}.x`,
    enrollmentKey.replace(id, id.replace('ekey', 'enroll')),
  ])
    await expectError(enrollRelay(requestWith(text)), 'enrollment_key_invalid')
  await expectError(EnrollmentKey.revoke(otherCaller, id), 'enrollment_key_not_found')
  expect((await EnrollmentKey.list(otherCaller, { page: 1, pageSize: 10 })).items).toEqual([])
  for (const expiresAt of [new Date(now()), new Date(now() + 366 * 86_400_000)])
    await expectError(newKey(caller, { expiresAt: expiresAt.toISOString() }), 'validation_failed')
})

test('a relay that waits for approval receives no jobs until a cluster administrator approves it', async () => {
  const caller = await newCaller()
  const { enrollmentKey } = await newKey(caller, { requireApproval: true })
  const enrolled = await enrollRelay(requestWith(enrollmentKey))
  const { clusterId } = enrolled
  const relay = () => relayCaller(caller, enrolled)
  const job = await Job.submit(caller, scriptJob(clusterId))
  const answer = await heartbeat(relay(), report)
  expect(answer).toMatchObject({ jobs: [], claims: [] })
  await goodbye(relay(), { reason: 'test' })
  await expectError(claim(relay(), job.id, undefined), 'job_not_claimable')
  await expectError(findOwnJob(relay(), job.id), 'job_not_found')
  expect(await Cluster.read(caller, clusterId)).toMatchObject({ status: 'Pending', awaitsApproval: true, relay: null })

  await expectError(approve(await newCaller(), clusterId), 'cluster_not_found')
  await approve(caller, clusterId)
  const approvedCluster = await Cluster.read(caller, clusterId)
  expect(approvedCluster).toMatchObject({ status: 'Healthy', relay: { id: enrolled.relayId, status: 'Connected' } })
  expect(approvedCluster).not.toHaveProperty('awaitsApproval')
  await expectError(approve(caller, clusterId), 'no_pending_relay')
  const onlineNodes = enrolled.nodes.map(({ id }) => ({ id, status: 'Online' as const }))
  const { claims } = await heartbeat(relay(), { ...report, nodes: onlineNodes })
  expect(claims?.map(({ jobId }) => jobId)).toEqual([job.id])
})

test('removing the cluster or enrolling with a token refuses a relay that waits for approval', async () => {
  const caller = await newCaller()
  const { enrollmentKey } = await newKey(caller, { requireApproval: true })
  const requests = [requestWith(enrollmentKey), requestWith(enrollmentKey)] as const
  const [removedRelay, replacedRelay] = [await enrollRelay(requests[0]), await enrollRelay(requests[1])]
  await Cluster.remove(caller, removedRelay.clusterId)
  const { enrollmentToken } = await issue(caller, replacedRelay.clusterId)
  await enrollRelay(enrollRequest(enrollmentToken))
  for (const relay of [removedRelay, replacedRelay])
    await expectError(heartbeat(relayCaller(caller, relay), report), 'relay_revoked')
  for (const request of requests) await expectError(enrollRelay(request), 'enrollment_key_invalid')
  await expectError(approve(caller, replacedRelay.clusterId), 'no_pending_relay')
})

test.each([
  ['{hostname}', 'box', 'box', 'box-2'],
  ['a', 'b', 'host-a', 'host-a-2'],
  ['edge site', 'b', 'edge site', 'edge site-2'],
  ['{hostname}', ' x ', 'host-x', 'host-x-2'],
  ['{hostname}', '😀'.repeat(40), '😀'.repeat(32), `${'😀'.repeat(31)}-2`],
  ['{hostname}-{hostname}', 'x'.repeat(200), 'x'.repeat(64), `${'x'.repeat(62)}-2`],
])('template %j and host %j result in the name %j, then %j', (template, hostname, first, second) => {
  const names = namesFor(template, hostname)
  expect(names.slice(0, 2)).toEqual([first, second])
  expect(names.every((name) => name.length <= 64)).toBe(true)
})
