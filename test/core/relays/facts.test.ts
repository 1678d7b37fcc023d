import type { FactsReport } from '@platform/contract/facts'
import * as Cluster from '@platform/core/clusters/cluster'
import { listNodes, type NodeQuery } from '@platform/core/clusters/node-list'
import { heartbeat } from '@platform/core/relays/heartbeat'
import { beforeAll, expect, test } from 'vitest'
import { bootstrapPlatform, callerWithCluster, enrolledCluster, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'

beforeAll(bootstrapPlatform)

type Enrolled = Awaited<ReturnType<typeof enrolledCluster>>

const report = ({ relay }: Enrolled, systems: string[], custom = {}): FactsReport => ({
  relayVersion: '0.2.0',
  custom,
  nodes: systems.map((os, index) => ({ id: relay.nodes[index]?.id ?? '', os, arch: 'x86_64', cpus: 4 })),
})

const beat = ({ request, heartbeat: usual }: Enrolled, change: object) => heartbeat(request(), { ...usual, ...change })

test('facts are asked for and stored once per hash; nodes and labels show them', async () => {
  const { caller, enrolled } = await callerWithCluster(['a', 'b'])
  const read = () => Cluster.read(caller, enrolled.cluster.id)
  expect((await read()).labels).toMatchObject({ 'platform/os': 'linux', 'platform/relay-version': '0.1.0' })
  expect(await beat(enrolled, {})).not.toHaveProperty('wantsFacts')
  const [first, second] = [{ factsHash: '00000001' }, { factsHash: '00000002' }]
  expect(await beat(enrolled, first)).toHaveProperty('wantsFacts', true)
  const facts = report(enrolled, ['linux', 'linux'], { rack: 'B 12', 'a/b': '' })
  expect(await beat(enrolled, { ...first, facts })).not.toHaveProperty('wantsFacts')
  const { nodes, relay, labels } = await read()
  expect(nodes).toMatchObject([{ name: 'a', status: 'Online', facts: { os: 'linux', cpus: 4 } }, { name: 'b' }])
  expect(relay).toMatchObject({ version: '0.2.0' })
  const derivedLabels = { 'platform/os': 'linux', 'platform/arch': 'x86_64', 'platform/relay-version': '0.2.0' }
  expect(labels).toEqual({ 'platform/type': 'Hypervisor', ...derivedLabels, 'facts/rack': 'B-12', 'facts/a/b': '' })

  const idleCalls = await countStoreCalls(() => beat(enrolled, {}))
  expect(await countStoreCalls(() => beat(enrolled, first))).toBe(idleCalls)
  expect(await countStoreCalls(() => beat(enrolled, { ...first, facts }))).toBe(idleCalls)
  // A node that goes offline keeps its facts.
  await beat(enrolled, { ...first, nodes: enrolled.heartbeat.nodes.slice(0, 1) })
  expect((await read()).nodes[1]).toMatchObject({ status: 'Offline', facts: { os: 'linux' } })

  const changedReport = report(enrolled, ['linux', 'freebsd'])
  await beat(enrolled, {
    ...second,
    facts: { ...changedReport, nodes: [...changedReport.nodes, { id: 'node_other', os: 'x' }] },
  })
  expect((await read()).labels).toEqual({ 'platform/type': 'Hypervisor', ...derivedLabels, 'platform/os': 'mixed' })
  expect((await read()).nodes.map(({ facts: { os } = {} }) => os)).toEqual(['linux', 'freebsd'])
})

test('facts of 2,000 nodes that are as long as possible fit into the store', async () => {
  const names = Array.from({ length: 2000 }, (_, index) => `node-${index}`)
  const { caller, enrolled } = await callerWithCluster(names)
  const noise = () => crypto.randomUUID() + crypto.randomUUID()
  const nodes = enrolled.relay.nodes.map(({ id }) => ({ id, os: noise(), osVersion: noise(), kernel: noise() }))
  await beat(enrolled, { factsHash: '00000001', facts: { relayVersion: '1', custom: {}, nodes } })
  const storedNodes = (await Cluster.read(caller, enrolled.cluster.id)).nodes
  expect(storedNodes).toHaveLength(2000)
  expect(storedNodes[0]?.facts).toMatchObject({ kernel: nodes[0]?.kernel })
})

test('lists nodes of all clusters by selector, system and name, in pages', async () => {
  const caller = await newCaller()
  const clusters = [
    await enrolledCluster(caller, ['db-1', 'db-2', 'web-1']),
    await enrolledCluster(caller, ['DB-3']),
    await enrolledCluster(caller, ['web-2', 'web-3']),
  ]
  await callerWithCluster(['db-9'])
  for (const [index, enrolled] of clusters.entries()) {
    await beat(enrolled, { factsHash: '00000001', facts: report(enrolled, ['linux', 'FreeBSD', 'linux']) })
    const labels = { env: index === 0 ? 'prod' : 'test' }
    await Cluster.update(caller, enrolled.cluster.id, { labels })
  }
  const namesOf = async (query: Partial<NodeQuery>) =>
    (await listNodes(caller, { page: 1, pageSize: 100, ...query })).items.map(({ name }) => name)
  const nodeNames = ['web-2', 'web-3', 'DB-3', 'db-1', 'db-2', 'web-1']
  const cases: [Partial<NodeQuery>, string[]][] = [
    [{}, nodeNames],
    [{ search: ' db-' }, ['DB-3', 'db-1', 'db-2']],
    [{ os: 'freebsd' }, ['web-3', 'db-2']],
    [{ selector: 'env=prod' }, ['db-1', 'db-2', 'web-1']],
    [{ selector: 'env!=prod,platform/os', os: 'LINUX', search: '2' }, ['web-2']],
    [{ search: 'none' }, []],
    [{ page: 2, pageSize: 4 }, ['db-2', 'web-1']],
    [{ sort: 'name' }, ['db-1', 'db-2', 'DB-3', 'web-1', 'web-2', 'web-3']],
    [{ sort: 'os', search: 'web' }, ['web-3', 'web-2', 'web-1']],
  ]
  for (const [query, names] of cases) expect([query, await namesOf(query)]).toEqual([query, names])
  const [firstNode] = (await listNodes(caller, { page: 1, pageSize: 1 })).items
  expect(firstNode).toMatchObject({
    clusterId: clusters[2]?.cluster.id,
    clusterName: clusters[2]?.cluster.name,
    status: 'Online',
  })

  for (const [query, names] of [
    [{}, nodeNames],
    [{ sort: '-name' }, ['web-3', 'web-2', 'web-1', 'DB-3', 'db-2', 'db-1']],
  ] satisfies [Partial<NodeQuery>, string[]][]) {
    const walkedNames: string[] = []
    let cursor: string | undefined
    do {
      const page = await listNodes(caller, { page: 1, pageSize: 2, cursor, ...query })
      if (cursor === undefined) expect(page).toMatchObject({ totalCount: 6, searchedAll: true })
      walkedNames.push(...page.items.map(({ name }) => name))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(walkedNames).toEqual(names)
  }
})
