import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import type { ClusterStatus } from '@platform/contract/cluster'
import { entryItem, genesisHash } from '@platform/core/audit/entry'
import { nameAttributes, parseCluster, statusCountName, statusIndexKeys } from '@platform/core/clusters/record'
import * as keys from '@platform/core/db/keys'
import { emptyOffsets, type OffsetIndex, withRecord } from '@platform/core/db/offset-index'
import { ListHead } from '@platform/core/db/offset-list'
import { derivedId, newId, newNonce, sha256 } from '@platform/core/id'
import { parseJob } from '@platform/core/jobs/record'
import { clientSettings, tableName } from './emulators.ts'
import { range } from './statistics.ts'

type StoredItem = Record<string, unknown>

export async function writeItems(environment: Record<string, string>, items: readonly StoredItem[]): Promise<void> {
  const store = DynamoDBDocumentClient.from(new DynamoDBClient(clientSettings(environment, 'DYNAMODB')), {
    marshallOptions: { removeUndefinedValues: true },
  })
  const starts = range(Math.ceil(items.length / 25)).map((batch) => batch * 25)
  const writeBatches = async () => {
    for (let start = starts.shift(); start !== undefined; start = starts.shift()) {
      const puts = items.slice(start, start + 25).map((Item) => ({ PutRequest: { Item } }))
      await store.send(new BatchWriteCommand({ RequestItems: { [tableName]: puts } }))
    }
  }
  await Promise.all(range(8).map(writeBatches))
  store.destroy()
}

export interface Fleet {
  organisationId: string
  count: number
  clusterIds: string[]
}

/** Presence times are this far in the future, so that stored statuses do not change during a benchmark. */
const aheadMs = 3_600_000

/** Writes clusters for an organisation without clusters: of 100, 90 Healthy, 4 Degraded, 5 Offline, 1 Pending. */
export async function writeFleet(
  environment: Record<string, string>,
  count: number,
  organisationId = newId('org'),
): Promise<Fleet> {
  // The clusters are registered one minute apart; their ids contain the time.
  const times = range(count).map((index) => Date.now() - (count - index) * 60_000)
  const counts: Record<string, number> = {}
  const clusters = times.map((timeMs, index) => {
    const percent = index % 100
    const status = percent < 90 ? 'Healthy' : percent < 94 ? 'Degraded' : percent < 99 ? 'Offline' : 'Pending'
    const type = Math.floor(index / 100) % 2 === 0 ? 'Hypervisor' : 'CloudLocal'
    const name = statusCountName(type, status)
    counts[name] = (counts[name] ?? 0) + 1
    const cluster: StoredCluster = {
      id: newId('clus', timeMs),
      name: `cluster-${String(index).padStart(6, '0')}`,
      type,
    }
    return clusterItem(organisationId, cluster, status)
  })
  const ranks = times.reduce<OffsetIndex>(withRecord, emptyOffsets())
  const head = ListHead.parse({ total: count, ranks, lastTimeMs: times.at(-1), version: count })
  await writeItems(environment, [
    ...clusters,
    ...clusters.map(({ id, name }) => ({
      ...keys.clusterName(organisationId, name),
      ...nameAttributes(id, name),
    })),
    ...clusters.map(({ id, type }, index) => labelsItem(organisationId, { id, type }, index)),
    { ...keys.clusterOffsets(organisationId), ...head },
    { ...keys.clusterStatusCounts(organisationId), ...counts },
  ])
  return { organisationId, count, clusterIds: clusters.map(({ id }) => id) }
}

/** Returns an item with twenty labels of usual lengths, five of them derived. */
function labelsItem(organisationId: string, { id, type }: Pick<StoredCluster, 'id' | 'type'>, index: number) {
  const labels = [
    'app=checkout-service',
    'backup=daily',
    'channel=stable',
    `cost-center=${4000 + (index % 40)}`,
    `customer=customer-${index % 500}`,
    'data-class=internal',
    `env=${index % 10 < 7 ? 'prod' : 'test'}`,
    ...(index % 20 === 0 ? ['legacy='] : ['maintenance=sunday']),
    'monitoring=standard',
    `owner=team-${index % 25}`,
    'provider=on-premises',
    `rack=r${index % 90}`,
    `region=eu-central-${index % 3}`,
    `tier=${['web', 'api', 'data'][index % 3]}`,
    `zone=z${index % 6}`,
  ]
  const reportedFacts = ['arch=x64', 'os=linux', 'relay-version=0.1.0']
  return {
    ...keys.clusterLabels(organisationId, id),
    labels: labels.join('\n'),
    derived: `site=${newId('site')}\ntype=${type}`,
    reported: reportedFacts.join('\n'),
  }
}

type StoredCluster = { id: string; name: string; type: 'Hypervisor' | 'CloudLocal' }

function clusterItem(organisationId: string, cluster: StoredCluster, status: ClusterStatus) {
  const isOnline = status === 'Healthy' || status === 'Degraded'
  const presence = {
    relayId: newId('relay'),
    relayName: 'relay on node-1',
    isSteady: true,
    saidGoodbye: status === 'Offline',
    nodeCount: 2,
    nodesOnline: status === 'Degraded' ? 1 : 2,
    nodesHash: '0123456789abcdef',
    beatNonce: newNonce(),
    recentTokens: ['0', ...range(5).map(() => sha256(newNonce()).slice(0, 16))].join(),
    lastSeenAtMs: Date.now() + aheadMs,
  }
  const item = {
    ...keys.cluster(organisationId, cluster.id),
    ...cluster,
    activeJobs: 0,
    waitingJobs: 0,
    ...(status === 'Pending' ? { enrollmentId: newId('enroll') } : presence),
    ...statusIndexKeys({ organisationId, type: cluster.type }, status),
    ...(isOnline && keys.dueIndexKeys(cluster.id, Date.now() + 2 * aheadMs)),
  }
  parseCluster(item)
  return item
}

const statuses = ['Completed', 'Completed', 'Completed', 'Failed', 'Cancelled'] as const

/** Writes finished jobs, one every ten seconds, and audit entries. Returns the id of their organisation. */
export async function writeHistory(
  environment: Record<string, string>,
  jobs: number,
  entries: number,
): Promise<string> {
  const organisationId = newId('org')
  const clusterIds = range(100).map(() => newId('clus'))
  const counts: Record<string, number> = { total: jobs }
  const items = range(jobs).map((index) => {
    const status = statuses[index % statuses.length] ?? 'Completed'
    counts[status] = (counts[status] ?? 0) + 1
    const createdAtMs = Date.now() - (jobs - index) * 10_000
    return jobItem({ organisationId, clusterId: clusterIds[index % 100] ?? '', status, createdAtMs })
  })
  const { auditItems, auditHead } = auditOf(organisationId, entries)
  await writeItems(environment, [
    ...items,
    ...auditItems,
    { ...keys.organisationCounts(organisationId), ...counts, ...auditHead },
  ])
  return organisationId
}

interface StoredJob {
  organisationId: string
  clusterId: string
  status: (typeof statuses)[number]
  createdAtMs: number
}

function jobItem(job: StoredJob): StoredItem {
  const { organisationId, createdAtMs } = job
  const id = newId('job', createdAtMs)
  const record = {
    ...job,
    id,
    type: 'InvokeScript',
    timeoutSeconds: 3600,
    createdBy: newId('user'),
    expiresAtMs: createdAtMs + 3_600_000,
    relayId: newId('relay'),
    leaseId: newId('lease'),
    claimKey: crypto.randomUUID(),
    completion: sha256(id),
    startedAtMs: createdAtMs,
    leaseRenewedAtMs: createdAtMs,
    completedAtMs: createdAtMs + 5000,
  }
  const item = { ...keys.job(organisationId, id), ...record, ...keys.jobIndexKeys(record) }
  parseJob(item)
  return item
}

function auditOf(organisationId: string, count: number) {
  const users = [newId('user'), newId('user')]
  const items: StoredItem[] = []
  let head = { seq: 0, atMs: Date.now() - count * 1000, hash: genesisHash(organisationId) }
  for (const index of range(count)) {
    const position = { seq: head.seq + 1, atMs: head.atMs + 1000, previousHash: head.hash }
    const id = derivedId('evt', position.atMs, String(index))
    const actor = { kind: 'user' as const, id: users[index % 2] ?? '' }
    const action = index % 10 === 0 ? 'cluster.update' : 'job.submit'
    const audit = { action, resource: newId('job'), detail: newId('clus') }
    const context = { organisationId, address: '192.0.2.1', traceId: sha256(id).slice(0, 32), atMs: position.atMs }
    const item = entryItem({ id, actor, ...context, audit, events: [], transitions: [] }, audit, position)
    items.push({ ...keys.auditEntry(organisationId, position.seq), ...item })
    head = { seq: position.seq, atMs: position.atMs, hash: item.hash }
  }
  return { auditItems: items, auditHead: { auditSeq: head.seq, auditHash: head.hash, auditAtMs: head.atMs } }
}
