import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { expectStatus } from './support/answer.ts'
import { newRelayKey, requestEnrollment, tokenClaims } from './support/relay.ts'
import { test } from './support/test.ts'

const heartbeatPath = '/api/v1/relay/heartbeat'
const heartbeatBody = JSON.stringify({ nodes: [], running: [], freeSlots: 0 })

test('returns node identifiers in order and the keys to pin', async ({ platform }) => {
  const { id, enrollmentToken } = await platform.newCluster()
  const names = ['node-2', 'node-1', 'node-3']
  const relay = await platform.enroll(enrollmentToken, names)
  expect(relay.clusterId).toBe(id)
  expect(relay.nodes.map(({ name }) => name)).toEqual(names)
  expect(new Set(relay.nodes.map((node) => node.id)).size).toBe(names.length)
  expect(relay.keys.keys.length).toBeGreaterThan(0)
})

test('accepts one of eight keys that race for a token', async ({ platform }) => {
  const { enrollmentToken } = await platform.newCluster()
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())),
  )
  expect(responses.filter(({ status }) => status === 201).length).toBe(1)
  for (const response of responses) if (response.status !== 201) expectStatus(response, 409, 'enrollment_token_used')
})

test('revokes an unused token when a new one is issued', async ({ platform, admin }) => {
  const { id, enrollmentToken } = await platform.newCluster()
  const issuedToken = expectStatus(await admin.post(`/api/v1/clusters/${id}/enrollment-token`), 201)
  expect(issuedToken.relayCommand).toContain(issuedToken.enrollmentToken)
  const refusedEnrollment = await requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())
  expectStatus(refusedEnrollment, 401, 'enrollment_token_invalid')
  await platform.enroll(issuedToken.enrollmentToken)
})

test('rejects the old relay once another enrolls with a new token', async ({ platform, admin }) => {
  const oldRelay = await platform.newRelay()
  expectStatus(await oldRelay.heartbeat(), 200)
  const issuedToken = expectStatus(await admin.post(`/api/v1/clusters/${oldRelay.clusterId}/enrollment-token`), 201)
  expectStatus(await oldRelay.heartbeat(), 200)
  const relay = await platform.enroll(issuedToken.enrollmentToken)
  expectStatus(await oldRelay.heartbeat(), 401, 'relay_revoked')
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).relay.id).toBe(relay.relayId)
})

test('accepts a signed request once', async ({ platform }) => {
  const relay = await platform.newRelay()
  const jobId = await platform.submit(relay.clusterId)
  await platform.waitForOffer(relay, jobId)
  const claimPath = `/api/v1/relay/jobs/${jobId}/claim`
  const sendTwice = async (path: string, body: string) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Relay ${relay.sign(tokenClaims(path, body))}`,
    }
    const first = expectStatus(await platform.anonymous.send('POST', path, { body, headers }), 200)
    return { first, second: await platform.anonymous.send('POST', path, { body, headers }) }
  }
  expectStatus((await sendTwice(heartbeatPath, heartbeatBody)).second, 401, 'unauthenticated')
  const { first, second } = await sendTwice(claimPath, '')
  expectStatus(second, 409, 'job_not_claimable')
  const completion = { leaseId: first.leaseId, outcome: 'exited', exitCode: 0, nodes: [] }
  const completionResponses = await sendTwice(claimPath.replace('claim', 'complete'), JSON.stringify(completion))
  expect(completionResponses.first.status).toBe('Completed')
})

test('a heartbeat makes the cluster Healthy, its relay Connected and its nodes Online', async ({ platform }) => {
  const relay = await platform.newRelay(['node-1', 'node-2'])
  const { heartbeatIntervalSeconds, jobs, cancel } = expectStatus(await relay.heartbeat(), 200)
  expect(heartbeatIntervalSeconds).toBeGreaterThanOrEqual(1)
  expect([jobs, cancel]).toEqual([[], []])
  const cluster = await platform.cluster(relay.clusterId)
  expect([cluster.status, cluster.nodeCount]).toEqual(['Healthy', 2])
  expect([cluster.relay.id, cluster.relay.status]).toEqual([relay.relayId, 'Connected'])
  expect(cluster.nodes).toEqual(relay.nodes.map((node) => ({ ...node, status: 'Online' })))
  expect(Date.parse(cluster.lastSeenAt)).toBeGreaterThanOrEqual(Date.parse(cluster.registeredAt))
})

test('a goodbye makes the cluster Offline until the second heartbeat', async ({ platform }) => {
  const relay = await platform.newRelay()
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await relay.goodbye(), 204)
  const cluster = await platform.cluster(relay.clusterId)
  expect([cluster.status, cluster.relay.status, cluster.nodes[0].status]).toEqual([
    'Offline',
    'Disconnected',
    'Unknown',
  ])
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).status).toBe('Offline')
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).status).toBe('Healthy')
})

test('shows reported facts with the nodes, and derives labels from them', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  const factsHash = 'facts-01'
  expect(expectStatus(await relay.heartbeat({ factsHash }), 200).wantsFacts).toBe(true)
  const nodes = relay.nodes.map(({ id }) => ({ id, os: 'linux', cpus: 2 }))
  const facts = { relayVersion: '0.1.0', custom: { rack: 'b 12' }, nodes }
  expect(expectStatus(await relay.heartbeat({ factsHash, facts }), 200).wantsFacts).toBeUndefined()
  const cluster = expectStatus(await admin.get(`/api/v1/clusters/${relay.clusterId}`), 200)
  expect(cluster.labels).toMatchObject({ 'platform/os': 'linux', 'facts/rack': 'b-12' })
  expect(cluster.nodes[0].facts).toEqual({ os: 'linux', cpus: 2 })
  const listedNodes = await waitFor('the node is listed', async () => {
    const { items } = expectStatus(await admin.get('/api/v1/nodes?selector=facts/rack=b-12&os=linux&pageSize=100'), 200)
    return items.find(({ clusterId }: { clusterId: string }) => clusterId === relay.clusterId)
  })
  expect(listedNodes).toMatchObject({ ...cluster.nodes[0], clusterName: cluster.name })
  expectStatus(await admin.get('/api/v1/nodes?selector=,'), 400, 'validation_failed')
})

test('relays enroll with a key, and a cluster that waits for approval gets no jobs before it', async ({
  platform,
  admin,
}) => {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const settings = { name: 'key', maxUses: 2, requireApproval: true, expiresAt, nameTemplate: 'key-{hostname}' }
  const { id, enrollmentKey } = expectStatus(await admin.post('/api/v1/enrollment-keys', settings), 201)
  const { items } = expectStatus(await admin.get('/api/v1/enrollment-keys?pageSize=100'), 200)
  expect(JSON.stringify(items)).not.toContain(enrollmentKey)
  const relay = newRelayKey()
  const request = {
    ...{ enrollmentKey, publicKey: relay.publicKey, displayName: 'relay', hostname: randomUUID(), platform: 'linux' },
    ...{ relayVersion: '0.1.0', nodes: [{ name: 'node-1' }] },
  }
  const enroll = (change = {}) => platform.anonymous.post('/api/v1/relay/enroll', { ...request, ...change })
  const { clusterId } = expectStatus(await enroll(), 201)
  try {
    expect(expectStatus(await enroll(), 201).clusterId).toBe(clusterId)
    expectStatus(await enroll({ hostname: 'copy' }), 409, 'enrollment_token_used')
    expectStatus(await enroll({ enrollmentToken: 'enroll_x.y' }), 400, 'validation_failed')
    const path = `/api/v1/clusters/${clusterId}`
    expect(expectStatus(await admin.get(path), 200)).toMatchObject({ status: 'Pending', awaitsApproval: true })
    expectStatus(await admin.post(`${path}/approve`), 204)
    expect(expectStatus(await admin.get(path), 200).relay.status).toBe('Connected')
    expectStatus(await admin.delete(`/api/v1/enrollment-keys/${id}`), 204)
    expect(expectStatus(await enroll(), 201).clusterId).toBe(clusterId)
    expectStatus(await enroll({ publicKey: newRelayKey().publicKey }), 401, 'enrollment_key_invalid')
  } finally {
    await admin.delete(`/api/v1/clusters/${clusterId}`)
  }
})

test('a relay update requires a signed release, another version is not offered, and unknown ids are not found', async ({
  admin,
}) => {
  expect(expectStatus(await admin.get('/api/v1/relay-updates'), 200).items).toBeInstanceOf(Array)
  const { status, body } = await admin.post('/api/v1/relay-updates', { selector: 'env=none', version: '99.0.0' })
  expect([status, body.error]).toEqual(
    status === 409 ? [409, 'relay_signature_missing'] : [422, 'version_not_available'],
  )
  expectStatus(await admin.post('/api/v1/relay-updates', { selector: ',' }), 400, 'validation_failed')
  expectStatus(await admin.get('/api/v1/relay-updates/rupd_x'), 404, 'relay_update_not_found')
  const clusters = '/api/v1/relay-updates/rupd_x/clusters'
  expectStatus(await admin.get(`${clusters}?status=RolledBack`), 404, 'relay_update_not_found')
  expectStatus(await admin.get(`${clusters}?status=x`), 400, 'validation_failed')
  expectStatus(await admin.post('/api/v1/relay-updates/rupd_x/cancel'), 404, 'relay_update_not_found')
})
