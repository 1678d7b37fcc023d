import { timeOf } from '@platform/core/id'
import { randomBytes } from 'node:crypto'

const degradedMs = 80_000
const offlineMs = 120_000

type Item = Readonly<Record<string, unknown>>

const numberOf = (item: Item, name: string): number => Number(item[name] ?? 0)
const iso = (ms: number): string => new Date(ms).toISOString()

export function clusterBody(item: Item, nodes: unknown = '[]') {
  const lastSeenAtMs = numberOf(item, 'lastSeenAtMs')
  const silenceMs = Date.now() - lastSeenAtMs
  const relay = {
    id: item['relayId'],
    displayName: item['relayName'],
    status: silenceMs > offlineMs ? 'Disconnected' : silenceMs > degradedMs ? 'Stale' : 'Connected',
    lastHeartbeatAt: iso(lastSeenAtMs),
  }
  return {
    id: item['id'],
    name: item['name'],
    type: item['type'],
    status: statusOf(item, silenceMs),
    nodeCount: numberOf(item, 'nodeCount'),
    registeredAt: iso(timeOf(String(item['id']))),
    lastSeenAt: lastSeenAtMs === 0 ? null : iso(lastSeenAtMs),
    nodes: JSON.parse(String(nodes)),
    relay: item['relayId'] === undefined ? null : relay,
  }
}

function statusOf(item: Item, silenceMs: number): string {
  if (item['relayId'] === undefined) return 'Pending'
  const online = numberOf(item, 'nodesOnline')
  const isSteady = item['isSteady'] !== false && item['saidGoodbye'] !== true
  if (!isSteady || silenceMs > offlineMs || online === 0) return 'Offline'
  return silenceMs > degradedMs || online < numberOf(item, 'nodeCount') ? 'Degraded' : 'Healthy'
}

export const newId = (prefix: string): string => `${prefix}_0${Date.now()}${randomBytes(6).toString('hex')}`

export const queueTimeMs = 3_600_000
export const retryMs = 30_000

export const outboxRecord = (eventId: string, userId: string, address: string, jobId: string, clusterId: string) =>
  JSON.stringify({
    actor: { kind: 'user', id: userId },
    address,
    traceId: randomBytes(16).toString('hex'),
    atMs: Date.now(),
    audit: { detail: clusterId, action: 'job.submit', resource: jobId },
    events: [
      {
        name: 'job.queued',
        subject: jobId,
        data: { jobId, clusterId, type: 'InvokeScript', createdBy: userId },
        id: eventId,
      },
    ],
    transitions: [{ clusterId, to: 'Queued' }],
  })
