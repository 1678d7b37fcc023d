import type { Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import type { OutboxRecord } from '@platform/core/outbox/record'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import {
  bootstrapPlatform,
  callerWithCluster,
  enrollRequest,
  errorCodeOf,
  expectError,
  newCaller,
  requestErrorCode,
} from '../../support/fixtures.ts'
import { auditEntries, drainOutbox, pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const hourMs = 3_600_000
const origin = { address: '192.0.2.9' }

/** A caller with a registered cluster. */
async function registration() {
  const caller = await newCaller()
  return { caller, ...(await Cluster.register(caller, { name: 'cluster', type: 'Hypervisor' })) }
}

/** The numbers of Pending and Healthy clusters in lists. */
const statusCounts = (caller: Caller) =>
  Promise.all(
    (['Pending', 'Healthy'] as const).map(
      async (status) => (await Cluster.list(caller, { page: 1, pageSize: 20, status })).totalCount,
    ),
  )

const tokenIdOf = (token: string): string => token.split('.')[0] ?? ''

const newestRecord = async (organisationId: string): Promise<Partial<OutboxRecord>> =>
  (await pendingRecords(organisationId)).toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1) ?? {}

test('enrollment makes the cluster Healthy, and commits events and an audit entry', async () => {
  const { caller, id, name, enrollmentToken } = await registration()
  expect(await statusCounts(caller)).toEqual([1, 0])
  const { relayId, clusterId, nodes, ...response } = await enroll(enrollRequest(enrollmentToken, ['a', 'b']), origin)
  expect([clusterId, nodes.map((node) => node.name), response.keys.keys.length]).toEqual([id, ['a', 'b'], 1])
  expect(await statusCounts(caller)).toEqual([0, 1])
  const { audit, events, address } = await newestRecord(caller.organisationId)
  expect(audit).toEqual({ action: 'relay.enroll', resource: id, detail: `${relayId} on host` })
  expect(address).toBe(origin.address)
  expect(events).toMatchObject([
    { name: 'cluster.enrolled', subject: id, data: { clusterId: id, name, relayId, nodeCount: 2 } },
    {
      name: 'cluster.status_changed',
      subject: id,
      data: { clusterId: id, previousStatus: 'Pending', status: 'Healthy' },
    },
  ])
  expect(await get(keys.relay(relayId))).toMatchObject({
    relayId,
    clusterId: id,
    organisationId: caller.organisationId,
    hostname: 'host',
    platform: 'linux',
    relayVersion: '0.1.0',
  })
})

test('a second relay replaces the first one', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const { cluster, relay } = enrolled
  const { enrollmentToken } = await issue(caller, cluster.id)
  const { relayId } = await enroll(enrollRequest(enrollmentToken, ['b']))
  const { events } = await newestRecord(caller.organisationId)
  const data = { clusterId: cluster.id, name: cluster.name, relayId }
  // The status does not change.
  expect(events?.map((event) => [event.name, event.data])).toEqual([
    ['cluster.enrolled', { ...data, nodeCount: 1 }],
    ['relay.replaced', { ...data, previousRelayId: relay.relayId }],
  ])
  expect(await get(keys.relay(relay.relayId))).toBeUndefined()
  expect(await statusCounts(caller)).toEqual([0, 1])
  expect(await Cluster.read(caller, cluster.id)).toMatchObject({ nodes: [{ name: 'b' }], relay: { id: relayId } })
})

test('rejects duplicate node names without using the token', async () => {
  const { enrollmentToken } = await registration()
  const detail = { in: 'body', path: '/nodes', code: 'not_unique', message: 'node names must be unique' }
  await expect(enroll(enrollRequest(enrollmentToken, ['a', 'b', 'a']))).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [detail] },
  })
  expect(await enroll(enrollRequest(enrollmentToken))).toMatchObject({ nodes: [{ name: 'node-1' }] })
})

test('issues a token for an own cluster and revokes the unused one', async () => {
  const { caller, id, enrollmentToken } = await registration()
  for (const unknownId of ['', 'clus', newId('clus'), newId('site')]) {
    expect([unknownId, await errorCodeOf(issue(caller, unknownId))]).toEqual([unknownId, 'cluster_not_found'])
  }
  await expectError(issue(await newCaller(caller.organisationId, 'Viewer'), id), 'forbidden')
  const issued = await issue(caller, id)
  expect(issued.relayCommand).toContain(`PLAT_ENROLLMENT_TOKEN=${issued.enrollmentToken} `)
  const tokenId = tokenIdOf(issued.enrollmentToken)
  const { audit } = await newestRecord(caller.organisationId)
  expect(audit).toEqual({ action: 'cluster.issue_enrollment_token', resource: id, detail: tokenId })
  expect(await get(keys.enrollment(tokenIdOf(enrollmentToken)))).toBeUndefined()
  // Stored for a week after its expiry, to detect reuse.
  const { ttl } = (await get(keys.enrollment(tokenId))) as { ttl: number }
  expect(Math.round((ttl * 1000 - now()) / hourMs)).toBe(8 * 24)
})

test('one of several concurrently issued tokens is valid', async () => {
  const { caller, id } = await registration()
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => issue(caller, id)))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
  expect(errors.filter((code) => code !== 'conflict')).toEqual([])
  const tokens = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.enrollmentToken] : []))
  const enrollments = await Promise.all(tokens.map((token) => errorCodeOf(enroll(enrollRequest(token)))))
  expect(enrollments.filter((code) => code === 'no error')).toHaveLength(1)
})

test('repeats the response for the same key for ten minutes, and rejects other keys', async () => {
  const { caller, id, enrollmentToken } = await registration()
  const request = enrollRequest(enrollmentToken, ['a', 'b'])
  const { relayId, nodes } = await enroll(request)
  expect(await enroll(request)).toMatchObject({ relayId, nodes })
  await expectError(enroll(enrollRequest(enrollmentToken)), 'enrollment_token_used')
  expect(await Cluster.read(caller, id)).toMatchObject({
    status: 'Healthy',
    nodeCount: 2,
    relay: { id: relayId, status: 'Connected' },
    nodes: ['a', 'b'].map((name) => ({ name, status: 'Online' })),
  })
  advanceClock(600_001)
  await expectError(enroll(request), 'enrollment_token_used')
})

test('reports reuse of a token once per hour, with the address of its origin', async () => {
  const { caller, id, enrollmentToken } = await registration()
  await enroll(enrollRequest(enrollmentToken))
  const reportsAfterReuse = async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      await expectError(enroll(enrollRequest(enrollmentToken), origin), 'enrollment_token_used')
      await drainOutbox(caller.organisationId)
    }
    return (await auditEntries(caller)).filter(({ action }) => action === 'relay.refuse')
  }
  advanceClock(hourMs - (now() % hourMs))
  expect(await reportsAfterReuse()).toMatchObject([{ resource: id, ...origin }])
  advanceClock(hourMs)
  expect(await reportsAfterReuse()).toHaveLength(2)
})

test('rejects forged, expired and replaced tokens', async () => {
  const { caller, id, enrollmentToken } = await registration()
  const forged = ['x', '.', '.x', `.${enrollmentToken}`].map((suffix) => enrollmentToken + suffix)
  for (const token of [...forged, 'anything']) {
    expect([token, await errorCodeOf(enroll(enrollRequest(token)))]).toEqual([token, 'enrollment_token_invalid'])
  }
  advanceClock(24 * hourMs)
  const request = enrollRequest(enrollmentToken)
  await expectError(enroll(request), 'enrollment_token_expired')
  const overHttp = requestErrorCode('relay', 'POST /api/v1/relay/enroll', undefined, request)
  expect(await overHttp).toBe('enrollment_token_expired')
  const issued = await issue(caller, id)
  await expectError(enroll(request), 'enrollment_token_invalid')
  expect(await enroll(enrollRequest(issued.enrollmentToken))).toMatchObject({ clusterId: id })
})
