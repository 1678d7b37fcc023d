import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

export const presence: Journeys = {
  'a relay that beats makes its cluster Healthy, itself Connected and its nodes Online': async (platform) => {
    const relay = await platform.newRelay(['node-1', 'node-2'])
    const { heartbeatIntervalSeconds, jobs, cancel } = answered(await relay.beat(), 200)
    assert.ok(heartbeatIntervalSeconds >= 1)
    assert.deepEqual([jobs, cancel], [[], []])
    const cluster = await platform.cluster(relay.clusterId)
    assert.deepEqual([cluster.status, cluster.nodeCount], ['Healthy', 2])
    assert.deepEqual([cluster.relay.id, cluster.relay.status], [relay.relayId, 'Connected'])
    assert.deepEqual(
      cluster.nodes,
      relay.nodes.map((node) => ({ ...node, status: 'Online' })),
    )
    assert.ok(Date.parse(cluster.lastSeenAt) >= Date.parse(cluster.registeredAt))
  },

  'a node that is not Online makes the cluster Degraded, no node Online makes it Offline': async (platform) => {
    const relay = await platform.newRelay(['node-1', 'node-2'])
    const [first, second] = relay.nodes.map(({ id }) => id)
    const online = { id: first, status: 'Online' }
    const statusAfter = async (nodes: object[]) => {
      answered(await relay.beat({ nodes }), 200)
      return (await platform.cluster(relay.clusterId)).status
    }
    assert.equal(await statusAfter([online, { id: second, status: 'Online' }]), 'Healthy')
    assert.equal(await statusAfter([online, { id: second, status: 'Offline' }]), 'Degraded')
    assert.equal(await statusAfter([online]), 'Degraded')
    assert.equal(await statusAfter([]), 'Offline')
    // A node of somebody else does not count.
    assert.equal(await statusAfter([{ id: 'node_00000000000000000000000000', status: 'Online' }]), 'Offline')
  },

  'goodbye makes the cluster Offline at once; it takes two beats to come back': async (platform) => {
    const relay = await platform.newRelay()
    answered(await relay.beat(), 200)
    answered(await relay.goodbye(), 204)
    const gone = await platform.cluster(relay.clusterId)
    assert.deepEqual([gone.status, gone.relay.status, gone.nodes[0].status], ['Offline', 'Disconnected', 'Unknown'])
    answered(await relay.beat(), 200)
    assert.equal((await platform.cluster(relay.clusterId)).status, 'Offline')
    answered(await relay.beat(), 200)
    assert.equal((await platform.cluster(relay.clusterId)).status, 'Healthy')
  },

  'beats that come at once are all answered, and the cluster stays Healthy': async (platform) => {
    const relay = await platform.newRelay()
    const answers = await Promise.all(Array.from({ length: 8 }, () => relay.beat()))
    assert.ok(answers.some(({ status }) => status === 200))
    assert.equal((await platform.cluster(relay.clusterId)).status, 'Healthy')
  },

  'the relay of a removed cluster is refused': async (platform) => {
    const relay = await platform.newRelay()
    answered(await relay.beat(), 200)
    answered(await (await platform.admin).delete(`/api/v1/clusters/${relay.clusterId}`), 204)
    answered(await relay.beat(), 401, 'unauthenticated')
    answered(await relay.goodbye(), 401, 'unauthenticated')
  },
}
