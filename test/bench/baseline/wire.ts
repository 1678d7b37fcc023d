import { randomBytes } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import * as keys from '@platform/core/db/keys'
import { timeMsOf } from '@platform/core/id'
import { parseLabels } from '@platform/core/labels/labels'

const degradedMs = 80_000
const offlineMs = 120_000

type Item = Readonly<Record<string, unknown>>

const numberOf = (item: Item, name: string): number => Number(item[name] ?? 0)
const iso = (ms: number): string => new Date(ms).toISOString()

export const clusterKeys = (organisationId: string, id: string) => [
  keys.cluster(organisationId, id),
  keys.nodes(organisationId, id),
  keys.sweepState(),
  keys.clusterLabels(organisationId, id),
]

export function clusterBody(items: readonly Item[]) {
  const item = items.find(({ name }) => name !== undefined)
  if (item === undefined) return undefined
  const { nodes = '[]', relayVersion: version } = items.find((each) => each['nodes'] !== undefined) ?? {}
  const lastSeenAtMs = numberOf(item, 'lastSeenAtMs')
  const silenceMs = Date.now() - lastSeenAtMs
  const relay = {
    id: item['relayId'],
    displayName: item['relayName'],
    status: silenceMs > offlineMs ? 'Disconnected' : silenceMs > degradedMs ? 'Stale' : 'Connected',
    lastHeartbeatAt: iso(Math.min(lastSeenAtMs, Date.now())),
    ...(version !== undefined && { version }),
    channel: 'none',
  }
  return {
    id: item['id'],
    name: item['name'],
    type: item['type'],
    status: statusOf(item, silenceMs),
    nodeCount: numberOf(item, 'nodeCount'),
    labels: parseLabels(items.find(({ labels }) => labels !== undefined)),
    registeredAt: iso(timeMsOf(String(item['id']))),
    lastSeenAt: lastSeenAtMs === 0 ? null : iso(Math.min(lastSeenAtMs, Date.now())),
    ...(typeof item['lastJob'] === 'string' && { lastJobId: `job_${item['lastJob']}` }),
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

const newId = (prefix: string): string => `${prefix}_0${Date.now()}${randomBytes(6).toString('hex')}`

const queueTimeMs = 3_600_000
const dispatchTimeMs = 620_000

export interface Submitter {
  organisationId: string
  userId: string
  sessionId: string
  address: string
}

/** Returns the keys of the items that decide whether the user may still submit jobs. */
export const rightsKeys = ({ organisationId, userId, sessionId }: Submitter) => [
  keys.user(organisationId, userId),
  keys.session(sessionId),
]

/** Returns the items and updates with which the platform stores a job of a cluster with few waiting jobs. */
export function submissionOf(
  { organisationId, userId, address }: Submitter,
  { clusterId, payload }: { clusterId: string; payload: object },
) {
  const id = newId('job')
  const createdAtMs = Date.now()
  const eventId = newId('evt')
  const event = { jobId: id, clusterId, type: 'InvokeScript', createdBy: userId }
  const record = {
    actor: { kind: 'user', id: userId },
    address,
    traceId: randomBytes(16).toString('hex'),
    atMs: createdAtMs,
    audit: { detail: clusterId, action: 'job.submit', resource: id },
    events: [{ name: 'job.queued', subject: id, data: event, id: eventId }],
    transitions: [{ clusterId, to: 'Queued' }],
  }
  return {
    job: {
      ...keys.job(organisationId, id),
      ...keys.jobIndexKeys({ organisationId, clusterId, status: 'Queued' }),
      ...keys.dueIndexKeys(id, createdAtMs + dispatchTimeMs),
      id,
      clusterId,
      type: 'InvokeScript',
      status: 'Queued',
      timeoutSeconds: 3600,
      createdAtMs,
      createdBy: userId,
      expiresAtMs: createdAtMs + queueTimeMs,
      isListed: true,
      payload: zstdCompressSync(JSON.stringify(payload)),
    },
    outbox: { ...keys.outbox(organisationId, eventId), id: eventId, record: JSON.stringify(record) },
    cluster: {
      Key: { ...keys.cluster(organisationId, clusterId) },
      UpdateExpression: 'SET lastJob = :last ADD activeJobs :one, jobs :one, listedJobs :jobs',
      ConditionExpression: 'attribute_exists(pk)',
      values: { ':last': id.slice('job_'.length), ':one': 1, ':jobs': new Set([id]) },
    },
    quota: {
      Key: { ...keys.activeJobs(organisationId, 0) },
      UpdateExpression: 'ADD #count :one',
      ConditionExpression: 'attribute_not_exists(#count) OR #count <= :limit',
      ExpressionAttributeNames: { '#count': 'count' },
      values: { ':one': 1, ':limit': 24_999 },
    },
  }
}
