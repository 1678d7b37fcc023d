import { BatchGetCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { timeOf } from '@platform/core/id'
import { type Item, store, TableName } from './store.ts'

/** D20 and the wire form of a cluster. */

const degradedMs = 80_000
const offlineMs = 120_000

/** A cluster of an organisation as callers see it, or undefined. */
export async function readCluster(organisationId: string, id: string) {
  const Keys = [{ ...keys.cluster(organisationId, id) }, { ...keys.nodes(organisationId, id) }]
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetCommand(request))
  const items = Responses?.[TableName] ?? []
  const cluster = items.find(({ name }) => name !== undefined)
  return cluster && viewOf(cluster, items.find(({ nodes }) => nodes !== undefined)?.['nodes'])
}

const numberOf = (item: Item, name: string): number => Number(item[name] ?? 0)
const iso = (ms: number): string => new Date(ms).toISOString()

function viewOf(item: Item, nodes: unknown = '[]') {
  const lastSeenAtMs = numberOf(item, 'lastSeenAtMs')
  const silenceMs = Date.now() - lastSeenAtMs
  return {
    id: item['id'],
    name: item['name'],
    type: item['type'],
    status: statusOf(item, silenceMs),
    nodeCount: numberOf(item, 'nodeCount'),
    registeredAt: iso(timeOf(String(item['id']))),
    lastSeenAt: lastSeenAtMs === 0 ? null : iso(lastSeenAtMs),
    nodes: JSON.parse(String(nodes)),
    relay: item['relayId'] === undefined ? null : relayOf(item, silenceMs),
  }
}

const relayOf = (item: Item, silenceMs: number) => ({
  id: item['relayId'],
  displayName: item['relayName'],
  status: silenceMs > offlineMs ? 'Disconnected' : silenceMs > degradedMs ? 'Stale' : 'Connected',
  lastHeartbeatAt: iso(numberOf(item, 'lastSeenAtMs')),
})

function statusOf(item: Item, silenceMs: number): string {
  if (item['relayId'] === undefined) return 'Pending'
  const online = numberOf(item, 'nodesOnline')
  const isSteady = item['isSteady'] !== false && item['saidGoodbye'] !== true
  if (!isSteady || silenceMs > offlineMs || online === 0) return 'Offline'
  return silenceMs > degradedMs || online < numberOf(item, 'nodeCount') ? 'Degraded' : 'Healthy'
}
