import { timeOf } from '@platform/core/id'
import { type Attributes, numberOf, textOf } from './store.ts'

/** D20 and the wire form of a cluster, by hand. */

const degradedMs = 80_000
const offlineMs = 120_000

export function statusOf(item: Attributes): string {
  if (item['relayId'] === undefined) return 'Pending'
  const silenceMs = Date.now() - numberOf(item, 'lastSeenAtMs')
  const online = numberOf(item, 'nodesOnline')
  const isSteady = item['isSteady']?.BOOL !== false && item['saidGoodbye']?.BOOL !== true
  if (!isSteady || silenceMs > offlineMs || online === 0) return 'Offline'
  return silenceMs > degradedMs || online < numberOf(item, 'nodeCount') ? 'Degraded' : 'Healthy'
}

const iso = (ms: number): string => new Date(ms).toISOString()

export function summaryOf(item: Attributes) {
  const lastSeenAtMs = numberOf(item, 'lastSeenAtMs')
  return {
    id: textOf(item, 'id'),
    name: textOf(item, 'name'),
    type: textOf(item, 'type'),
    status: statusOf(item),
    nodeCount: numberOf(item, 'nodeCount'),
    registeredAt: iso(timeOf(textOf(item, 'id'))),
    lastSeenAt: lastSeenAtMs === 0 ? null : iso(lastSeenAtMs),
  }
}

export function detailOf(item: Attributes, nodesItem: Attributes = {}) {
  const silenceMs = Date.now() - numberOf(item, 'lastSeenAtMs')
  const relay = {
    id: textOf(item, 'relayId'),
    displayName: textOf(item, 'relayName'),
    status: silenceMs > offlineMs ? 'Disconnected' : silenceMs > degradedMs ? 'Stale' : 'Connected',
    lastHeartbeatAt: iso(numberOf(item, 'lastSeenAtMs')),
  }
  const nodes: object[] = JSON.parse(textOf(nodesItem, 'nodes') || '[]')
  return { ...summaryOf(item), nodes, relay: item['relayId'] === undefined ? null : relay }
}
