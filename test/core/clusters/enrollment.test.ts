import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { type Caller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { type OutboxRecord } from '@platform/core/outbox/record'
import { enroll, issue } from '@platform/core/relays/enrollment'
import {
  newCaller,
  enrolledCluster,
  enrollRequest,
  requestErrorCode,
  errorCodeOf,
  bootstrapPlatform,
  expectError,
} from '../../support/fixtures.ts'
import { auditEntries, drainOutbox, pendingRecords } from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const hourMs = 3_600_000

const registeredBy = (caller: Caller, name: string) => Cluster.register(caller, { name, type: 'Hypervisor' })

/** How many clusters of the caller's organisation have a status, as lists count them. */
const countOf = async (caller: Caller, status: 'Pending' | 'Healthy') =>
  (await Cluster.list(caller, { page: 1, pageSize: 20, status })).totalCount

/** The public half of an enrollment token. */
const idOf = (token: string): string => token.split('.')[0] ?? ''

/** The newest thing that was told in an organisation. */
const lastTold = async (organisationId: string): Promise<Partial<OutboxRecord>> =>
  (await pendingRecords(organisationId)).toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1) ?? {}

test('a relay that enrolls makes its cluster Healthy, which lists count, events tell and the audit trail keeps', async () => {
  const caller = await newCaller()
  const { id, name, enrollmentToken } = await registeredBy(caller, 'first')
  expect([await countOf(caller, 'Pending'), await countOf(caller, 'Healthy')]).toEqual([1, 0])
  const {
    relayId,
    clusterId,
    nodes,
    keys: { keys: signers },
  } = await enroll(enrollRequest(enrollmentToken, ['a', 'b']), {
    address: '192.0.2.9',
  })
  expect([clusterId, nodes.map((node) => node.name), signers.length]).toEqual([id, ['a', 'b'], 1])
  expect([await countOf(caller, 'Pending'), await countOf(caller, 'Healthy')]).toEqual([0, 1])
  const { audit, events, address } = await lastTold(caller.organisationId)
  expect([audit, address]).toEqual([
    { action: 'relay.enroll', resource: id, detail: `${relayId} on host` },
    '192.0.2.9',
  ])
  expect(events).toEqual([
    {
      id: expect.any(String),
      name: 'cluster.enrolled',
      subject: id,
      data: { clusterId: id, name, relayId, nodeCount: 2 },
    },
    {
      id: expect.any(String),
      name: 'cluster.status_changed',
      subject: id,
      data: expect.objectContaining({ clusterId: id, previousStatus: 'Pending', status: 'Healthy' }),
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

test('a relay that takes the place of another is told as that, and of the other nothing is left', async () => {
  const caller = await newCaller()
  const { cluster, relay } = await enrolledCluster(caller)
  const { enrollmentToken } = await issue(caller, cluster.id)
  const { relayId } = await enroll(enrollRequest(enrollmentToken, ['b']))
  const { events } = await lastTold(caller.organisationId)
  const facts = { clusterId: cluster.id, name: cluster.name, relayId }
  // It was Healthy, and is.
  expect(events?.map(({ name, data }) => [name, data])).toEqual([
    ['cluster.enrolled', { ...facts, nodeCount: 1 }],
    ['relay.replaced', { ...facts, previousRelayId: relay.relayId }],
  ])
  expect(await get(keys.relay(relay.relayId))).toBeUndefined()
  expect(await countOf(caller, 'Healthy')).toBe(1)
  expect(await Cluster.read(caller, cluster.id)).toMatchObject({ nodes: [{ name: 'b' }], relay: { id: relayId } })
})

test('two nodes of one name are refused, and leave the token good', async () => {
  const { enrollmentToken } = await registeredBy(await newCaller(), 'doubled')
  const refused = enroll(enrollRequest(enrollmentToken, ['a', 'b', 'a']))
  await expect(refused).rejects.toMatchObject({
    code: 'validation_failed',
    extra: { details: [{ in: 'body', path: '/nodes', code: 'not_unique', message: 'node names must be unique' }] },
  })
  expect(await enroll(enrollRequest(enrollmentToken))).toMatchObject({ nodes: [{ name: 'node-1' }] })
})

test('a token is issued for a cluster that is there, by whom it belongs to, and the trail names it', async () => {
  const caller = await newCaller()
  const { id, enrollmentToken } = await registeredBy(caller, 'issuing')
  for (const absent of ['', 'clus', newId('clus'), newId('site')]) {
    expect([absent, await errorCodeOf(issue(caller, absent))]).toEqual([absent, 'cluster_not_found'])
  }
  await expectError(issue(await newCaller(), id), 'cluster_not_found')
  await expectError(issue(await newCaller(caller.organisationId, 'Viewer'), id), 'forbidden')
  const fresh = await issue(caller, id)
  const [former, latest] = [idOf(enrollmentToken), idOf(fresh.enrollmentToken)]
  expect(fresh.relayCommand).toContain(`PLAT_ENROLLMENT_TOKEN=${fresh.enrollmentToken} `)
  const { audit } = await lastTold(caller.organisationId)
  expect(audit).toEqual({ action: 'cluster.issue_enrollment_token', resource: id, detail: latest })
  expect(await get(keys.enrollment(former))).toBeUndefined()
  // A week after its day it is forgotten; until then a second use is told from a made-up token.
  const { ttl } = (await get(keys.enrollment(latest))) as { ttl: number }
  expect(Math.round((ttl * 1000 - now()) / hourMs)).toBe(8 * 24)
})

test('of tokens that are issued at once exactly one is good', async () => {
  const caller = await newCaller()
  const { id } = await registeredBy(caller, 'hurried')
  const tries = await Promise.allSettled(Array.from({ length: 6 }, () => issue(caller, id)))
  const refusals = tries.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
  expect(refusals.filter((code) => code !== 'conflict')).toEqual([])
  const issued = tries.flatMap((each) => (each.status === 'fulfilled' ? [each.value.enrollmentToken] : []))
  const outcomes = await Promise.all(issued.map((token) => errorCodeOf(enroll(enrollRequest(token)))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
})

test('an enrollment answers the same again for the same key, and is used up for any other', async () => {
  const caller = await newCaller()
  const { id, enrollmentToken } = await registeredBy(caller, 'enrolling')
  const request = enrollRequest(enrollmentToken, ['a', 'b'])
  const first = await enroll(request)
  expect(await enroll(request)).toMatchObject({ relayId: first.relayId, nodes: first.nodes })
  await expectError(enroll(enrollRequest(enrollmentToken)), 'enrollment_token_used')
  expect(await Cluster.read(caller, id)).toMatchObject({
    status: 'Healthy',
    nodeCount: 2,
    relay: { id: first.relayId, status: 'Connected' },
    nodes: [
      { name: 'a', status: 'Online' },
      { name: 'b', status: 'Online' },
    ],
  })
  advanceClock(600_001)
  await expectError(enroll(request), 'enrollment_token_used')
})

test('a used token that comes back again and again raises one alarm an hour, and tells where it came from', async () => {
  const caller = await newCaller()
  const { id, enrollmentToken } = await registeredBy(caller, 'alarmed')
  await enroll(enrollRequest(enrollmentToken))
  const alarmsAfterKnocks = async () => {
    for (let knock = 0; knock < 3; knock++) {
      const attempt = enroll(enrollRequest(enrollmentToken), { address: '192.0.2.9' })
      await expectError(attempt, 'enrollment_token_used')
      await drainOutbox(caller.organisationId)
    }
    return (await auditEntries(caller)).filter(({ action }) => action === 'relay.refuse')
  }
  const untilNextHourMs = hourMs - (now() % hourMs)
  advanceClock(untilNextHourMs)
  expect(await alarmsAfterKnocks()).toMatchObject([{ resource: id, address: '192.0.2.9' }])
  advanceClock(hourMs)
  expect(await alarmsAfterKnocks()).toHaveLength(2)
})

test('a token is refused when it is forged, expired, or replaced by a newer one', async () => {
  const caller = await newCaller()
  const { id, enrollmentToken } = await registeredBy(caller, 'guarded')
  for (const more of ['x', '.', '.x', `.${enrollmentToken}`])
    await expectError(enroll(enrollRequest(enrollmentToken + more)), 'enrollment_token_invalid')
  await expectError(enroll(enrollRequest('anything')), 'enrollment_token_invalid')
  advanceClock(24 * hourMs)
  await expectError(enroll(enrollRequest(enrollmentToken)), 'enrollment_token_expired')
  const asked = await requestErrorCode('relay', 'POST /api/v1/relay/enroll', undefined, enrollRequest(enrollmentToken))
  expect(asked).toBe('enrollment_token_expired')
  const newer = await issue(caller, id)
  await expectError(enroll(enrollRequest(enrollmentToken)), 'enrollment_token_invalid')
  expect(await enroll(enrollRequest(newer.enrollmentToken))).toMatchObject({ clusterId: id })
})
