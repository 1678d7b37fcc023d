import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'

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

test('an offline node makes the cluster Degraded, no online node makes it Offline', async ({ platform }) => {
  const relay = await platform.newRelay(['node-1', 'node-2'])
  const [first, second] = relay.nodes.map(({ id }) => id)
  const online = { id: first, status: 'Online' }
  const statusAfter = async (nodes: object[]) => {
    expectStatus(await relay.heartbeat({ nodes }), 200)
    return (await platform.cluster(relay.clusterId)).status
  }
  expect(await statusAfter([online, { id: second, status: 'Online' }])).toBe('Healthy')
  expect(await statusAfter([online, { id: second, status: 'Offline' }])).toBe('Degraded')
  expect(await statusAfter([online])).toBe('Degraded')
  expect(await statusAfter([])).toBe('Offline')
  // Nodes of other clusters are ignored.
  expect(await statusAfter([{ id: 'node_00000000000000000000000000', status: 'Online' }])).toBe('Offline')
})

test('goodbye makes the cluster Offline until two heartbeats', async ({ platform }) => {
  const relay = await platform.newRelay()
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await relay.goodbye(), 204)
  const gone = await platform.cluster(relay.clusterId)
  expect([gone.status, gone.relay.status, gone.nodes[0].status]).toEqual(['Offline', 'Disconnected', 'Unknown'])
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).status).toBe('Offline')
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).status).toBe('Healthy')
})

test('accepts concurrent heartbeats and keeps the cluster Healthy', async ({ platform }) => {
  const relay = await platform.newRelay()
  const answers = await Promise.all(Array.from({ length: 8 }, () => relay.heartbeat()))
  expect(answers.some(({ status }) => status === 200)).toBe(true)
  expect((await platform.cluster(relay.clusterId)).status).toBe('Healthy')
})

test('rejects the relay of a removed cluster', async ({ platform, admin }) => {
  const relay = await platform.newRelay()
  expectStatus(await relay.heartbeat(), 200)
  expectStatus(await admin.delete(`/api/v1/clusters/${relay.clusterId}`), 204)
  expectStatus(await relay.heartbeat(), 401, 'unauthenticated')
  expectStatus(await relay.goodbye(), 401, 'unauthenticated')
})
