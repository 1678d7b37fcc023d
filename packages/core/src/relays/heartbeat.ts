import type { FactsReport } from '@platform/contract/facts'
import type { Heartbeat, HeartbeatResponse } from '@platform/contract/relay'
import { type RelayCaller, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import {
  type ClusterRecord,
  countedPresence,
  intervals,
  relayIdsOf,
  statusIndexKeys,
  parseCluster,
  statusEvents,
  statusCountWrite,
} from '../clusters/record.ts'
import { observeNow } from '../clusters/downtime.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, getMany, patch, tryUpdate, upsert } from '../db/table.ts'
import { platformError, storeContentionError } from '../error.ts'
import { countWaiting, withoutReported } from '../jobs/inbox.ts'
import { type JobRecord, parseRelayed } from '../jobs/record.ts'
import { claimWaiting, renewLease, waitingIn } from '../jobs/claim.ts'
import { log } from '../log.ts'
import { factLabels, factsAttributes } from '../clusters/facts.ts'
import { reportedLabelsWrite } from '../labels/labels.ts'
import { countOnline, nodesHash, nodesItem, parseNodes, type StoredNode } from '../clusters/node.ts'
import { newNonce } from '../id.ts'
import { channelFor } from './channel.ts'
import { instanceAfter } from './instance.ts'
import { offerOf, resultOf } from './update-offer.ts'
import { forEachLimit } from '../lib/async.ts'
import { successorsOf } from '../signing/statement-keys.ts'
import { consumeHeartbeatNonce } from '../clusters/request-nonce.ts'
import { clusterStatus, isChannelOpen, nextCheckAfterHeartbeat, withSilence } from '../clusters/status.ts'

const maxAttempts = 4
/** Limits concurrent renewals, because a heartbeat may name a thousand jobs. */
const maxConcurrentRenewals = 25
/** A cluster that was Offline needs two heartbeats to return; the relay sends the second one after this time. */
const secondHeartbeatSeconds = 1

export async function heartbeat(caller: RelayCaller, report: Heartbeat): Promise<HeartbeatResponse> {
  const record = await recordHeartbeat(caller, report)
  if (record.relayId !== caller.relayId) return waitingForApproval()
  const [work, cancel, statementKeys] = await Promise.all([
    workFor(caller, record, report),
    renewLeases(caller, report.running),
    statementKeysFor(report.statementKey),
  ])
  const update = offerOf(record)
  // The relay reports the progress of an update with heartbeats, so their interval is short.
  const intervalSeconds = update === undefined ? intervalFor(record, report) : intervals.heartbeatSeconds
  return {
    heartbeatIntervalSeconds: record.isSteady ? intervalSeconds : Math.min(intervalSeconds, secondHeartbeatSeconds),
    ...work,
    cancel,
    channel: report.channel && channelFor({ ...caller, instanceId: report.instanceId }),
    statementKeys,
    update,
    ...(report.factsHash !== record.factsHash && report.factsHash !== undefined && { wantsFacts: true as const }),
    serverTime: iso(now()),
  }
}

/** The response has no work, so its request needs no protection against replays. */
const waitingForApproval = (): HeartbeatResponse => ({
  heartbeatIntervalSeconds: intervals.heartbeatSeconds,
  jobs: [],
  claims: [],
  moreJobs: false,
  cancel: [],
  serverTime: iso(now()),
})

/** A channel counts as open only if the broker has reported it, because the broker also reports when a relay fails. */
const hasChannel = (record: ClusterRecord, report: Heartbeat): boolean =>
  report.channel === 'open' && isChannelOpen(record, intervals)

const intervalFor = (record: ClusterRecord, report: Heartbeat): number =>
  hasChannel(record, report)
    ? Math.max(intervals.channelHeartbeatSeconds, intervals.heartbeatSeconds)
    : intervals.heartbeatSeconds

async function workFor(caller: RelayCaller, record: ClusterRecord, report: Heartbeat) {
  const { claimKey, freeSlots, statementKey, running } = report
  const cluster = withoutReported(record, running)
  if (claimKey === undefined) return { jobs: await waitingIn(caller, cluster, freeSlots) }
  const claims = await claimWaiting(caller, cluster, { claimKey, freeSlots, statementKey })
  if (claims !== undefined) return { jobs: [], ...claims }
  // Jobs may have changed since the record was read.
  const latestRecord = withoutReported((await Cluster.find(record.organisationId, record.id)) ?? record, running)
  return {
    jobs: await waitingIn(caller, latestRecord, freeSlots),
    claims: [],
    moreJobs: countWaiting(latestRecord) > freeSlots,
  }
}

/**
 * Returns undefined if the relay trusts the current key or does not name one, or if only a later heartbeat can decide.
 * Returns an empty list if the relay must be enrolled again.
 */
async function statementKeysFor(kid: string | undefined): Promise<string[] | undefined> {
  if (kid === undefined) return undefined
  const successors = await successorsOf(kid)
  if (successors === 'unknown') return []
  return successors === 'undecided' || successors.length === 0 ? undefined : successors
}

/**
 * The first attempt may read stale data, because the write is conditional and a relay is rejected only after a
 * consistent read.
 */
async function currentCluster(
  { organisationId, clusterId, relayId }: RelayCaller,
  attempt: number,
): Promise<ClusterRecord> {
  if (attempt === 0) {
    const staleRecord = await Cluster.find(organisationId, clusterId, { mayBeStale: true })
    if (staleRecord?.relayId === relayId) return staleRecord
  }
  const record = await Cluster.find(organisationId, clusterId)
  if (record === undefined || !relayIdsOf(record).includes(relayId)) throw platformError('relay_revoked')
  return record
}

async function recordHeartbeat(caller: RelayCaller, report: Heartbeat): Promise<ClusterRecord> {
  const nonce = newNonce()
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const record = await currentCluster(caller, attempt)
    if (record.relayId !== caller.relayId) return record
    // An earlier attempt succeeded but its response was lost. Any other use of the token is a replay.
    if (record.beatNonce === nonce) return record
    const recentTokens = consumeHeartbeatNonce(record.recentTokens, caller, now())
    if (recentTokens === undefined) throw platformError('unauthenticated')
    const { presence, ...changes } = await changesOf(record, report)
    const reportedFields = {
      scriptsIsolated: report.scriptsIsolated,
      ...instanceAfter(record, caller, report),
      ...channelAfterReport(record, caller, report),
      ...resultOf(record, report),
    }
    const intervalSeconds = intervalFor({ ...record, ...reportedFields }, report)
    const startedIds = new Set(report.running.filter((id) => record.listedJobs.has(id)))
    const change = {
      presence: { ...presence, ...reportedFields },
      ...changes,
      recentTokens,
      nonce,
      intervalSeconds,
      startedIds,
    }
    const updatedRecord = await writeHeartbeat(record, change)
    if (updatedRecord !== undefined) return updatedRecord
  }
  throw storeContentionError()
}

/**
 * A relay may report the loss of its channel before the broker does. A report that is older than the channel is
 * ignored.
 */
const channelAfterReport = (record: ClusterRecord, { issuedAtMs }: RelayCaller, { channel }: Heartbeat) =>
  channel !== 'open' && isChannelOpen(record, intervals) && issuedAtMs > (record.channelOpenedAtMs ?? 0)
    ? { channelClosedAtMs: now() }
    : {}

async function changesOf(record: ClusterRecord, report: Heartbeat) {
  const hash = nodesHash(report.nodes)
  const { factsHash } = report
  const facts = factsHash === undefined || factsHash === record.factsHash ? undefined : report.facts
  if (hash === record.nodesHash && facts === undefined)
    return { presence: await presenceAfter(record, record.nodesOnline) }
  const storedNodes = parseNodes(await get(keys.nodes(record.organisationId, record.id)))
  const onlineIds = new Set(report.nodes.filter(({ status }) => status === 'Online').map(({ id }) => id))
  const nodes = storedNodes.map(({ id, name }) => ({
    id,
    name,
    status: onlineIds.has(id) ? ('Online' as const) : ('Offline' as const),
  }))
  const nodesOnline = countOnline(nodes)
  const presence = { ...(await presenceAfter(record, nodesOnline)), nodesHash: hash, nodesOnline }
  return { presence: facts === undefined ? presence : { ...presence, factsHash }, nodes, facts }
}

/**
 * After Offline, the first heartbeat of a cluster with online nodes does not change the status; the second one does.
 */
async function presenceAfter(record: ClusterRecord, nodesOnline: number) {
  // If no sweep has stored Offline, the silence may be downtime of the platform, which `observeNow` detects.
  if (wasOffline(record) && record.status !== 'Offline') await observeNow()
  const isFirst = wasOffline(record) && nodesOnline > 0
  return { lastSeenAtMs: now(), saidGoodbye: false, isSteady: !isFirst }
}

const wasOffline = (record: ClusterRecord): boolean =>
  clusterStatus({ ...countedPresence(record), isSteady: true }, now()) === 'Offline'

interface HeartbeatChange {
  presence: Partial<ClusterRecord>
  nodes?: StoredNode[]
  /** Set only together with `nodes`. */
  facts?: FactsReport | undefined
  recentTokens: string
  nonce: string
  intervalSeconds: number
  /** Listed jobs that the relay reports as running. */
  startedIds?: ReadonlySet<string>
}

async function writeHeartbeat(
  record: ClusterRecord,
  { presence, nodes, facts, recentTokens, nonce, intervalSeconds, startedIds }: HeartbeatChange,
): Promise<ClusterRecord | undefined> {
  const status = clusterStatus(withSilence({ ...record, ...presence }, intervals), now())
  const dueAtMs = nextCheckAfterHeartbeat(
    now(),
    record.dueAtMs,
    intervalSeconds,
    intervalSeconds !== intervals.heartbeatSeconds,
  )
  const dueAttributes = dueAtMs === undefined ? {} : keys.dueIndexKeys(record.id, dueAtMs)
  const key = keys.cluster(record.organisationId, record.id)
  const change = {
    set: { ...presence, recentTokens, beatNonce: nonce, ...dueAttributes },
    ...(startedIds !== undefined && startedIds.size > 0 && { drop: { listedJobs: startedIds } }),
  }
  const condition = {
    beatNonce: { is: record.beatNonce },
    relayId: { is: record.relayId },
    ...(presence.channelClosedAtMs !== undefined && { channelId: unchangedCondition(record.channelId) }),
    // An offer may be withdrawn concurrently.
    ...(record.relayUpdateId !== undefined && { relayUpdateId: { is: record.relayUpdateId } }),
  }
  const isDuplicate = presence.duplicateReportedAtMs !== undefined
  if (status === record.status && nodes === undefined && !isDuplicate) {
    const item = await tryUpdate(key, change, condition)
    return item && parseCluster(item)
  }
  const changeWithStatus = { ...change, set: { ...change.set, ...statusIndexKeys(record, status) } }
  const failure = await commit(system(record.organisationId), {
    writes: [
      patch(key, changeWithStatus, { ...condition, status: { is: record.status } }),
      ...(nodes === undefined ? [] : nodesWrites(record, nodes, facts)),
      ...(status === record.status ? [] : [statusCountWrite(record, record.status, status)]),
    ],
    events: [...statusEvents(record, status), ...(isDuplicate ? [duplicateEvent(record)] : [])],
    ...(isDuplicate && {
      audit: { action: 'relay.detect_duplicate', resource: record.id, detail: record.relayId ?? '' },
    }),
  })
  return failure === undefined ? { ...record, ...presence } : undefined
}

function nodesWrites({ organisationId, id }: ClusterRecord, nodes: StoredNode[], facts: FactsReport | undefined) {
  const key = keys.nodes(organisationId, id)
  if (facts === undefined) return [upsert(key, { set: nodesItem(nodes) })]
  const attributes = factsAttributes(facts, new Set(nodes.map((node) => node.id)))
  return [
    upsert(key, { set: { ...nodesItem(nodes), ...attributes } }),
    reportedLabelsWrite(organisationId, id, factLabels(facts)),
  ]
}

const duplicateEvent = ({ id: clusterId, name, relayId = '' }: ClusterRecord) => ({
  name: 'relay.duplicate_detected' as const,
  subject: clusterId,
  data: { clusterId, name, relayId },
})

/** Renews the leases of the relay's running jobs. Returns the ids of the jobs that the relay must cancel. */
async function renewLeases(caller: RelayCaller, jobIds: readonly string[]): Promise<string[]> {
  if (jobIds.length === 0) return []
  const uniqueIds = [...new Set(jobIds)]
  const jobs = (await getMany(uniqueIds.map((id) => keys.job(caller.organisationId, id)))).map(parseRelayed)
  const isOwn = (job: JobRecord | undefined) => job?.status === 'Running' && job.relayId === caller.relayId
  const runningJobs = jobs.filter((job) => job !== undefined).filter(isOwn)
  await forEachLimit(maxConcurrentRenewals, runningJobs, renewLease)
  return uniqueIds.filter((_, index) => !isOwn(jobs[index]) || jobs[index]?.cancelRequestedAtMs !== undefined)
}

/** The cluster becomes Offline at once. */
export async function goodbye(caller: RelayCaller, { reason }: { reason: string }): Promise<void> {
  log('info', 'Relay signed off', { clusterId: caller.clusterId, reason })
  const nonce = newNonce()
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const record = await currentCluster(caller, attempt)
    if (record.beatNonce === nonce || record.relayId !== caller.relayId) return
    const recentTokens = consumeHeartbeatNonce(record.recentTokens, caller, now())
    if (recentTokens === undefined) throw platformError('unauthenticated')
    const closedFields = isChannelOpen(record, intervals) && { channelClosedAtMs: now() }
    const presence = { saidGoodbye: true, lastSeenAtMs: now(), isSteady: true, ...closedFields }
    const change = { presence, recentTokens, nonce, intervalSeconds: intervals.heartbeatSeconds }
    if (await writeHeartbeat(record, change)) return
  }
  throw storeContentionError()
}
