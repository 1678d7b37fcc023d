import { type Heartbeat, type HeartbeatResponse } from '@platform/contract/relay'
import { type RelayCaller, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { type ClusterRecord, statusIndexKeys, parseCluster, statusEvent, statusCountWrite } from '../clusters/record.ts'
import { iso, now } from '../clock.ts'
import * as Cluster from '../clusters/cluster.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, getMany, patch, query, replace, tryUpdate } from '../db/table.ts'
import { storeContention, platformError } from '../error.ts'
import { type JobRecord, parseRelayed } from '../jobs/record.ts'
import { renewLease } from '../jobs/claim.ts'
import { log } from '../log.ts'
import { countOnline, nodesHash, nodesItem, parseNodes } from '../clusters/node.ts'
import { newNonce } from '../id.ts'
import { forEachLimit } from '../lib/async.ts'
import { consumeHeartbeatNonce } from '../clusters/request-nonce.ts'
import { clusterStatus, nextCheckAfterHeartbeat } from '../clusters/status.ts'

/** Heartbeats and goodbyes of relays. */

/** Heartbeats of a relay are sequential; a concurrent one retries. */
const attempts = 4
/** A heartbeat may name a thousand jobs. */
const renewedAtOnce = 25
/** A returning cluster needs two heartbeats; the second one is requested at once. */
const secondBeatSeconds = 1

/**
 * One heartbeat: updates presence, node statuses and job leases; returns work. One read and one write if there is
 * nothing to do. `idle` allows the gateway to hold the response.
 */
export async function heartbeat(
  caller: RelayCaller,
  beat: Heartbeat,
): Promise<{ answer: HeartbeatResponse; idle: boolean }> {
  const row = await recordBeat(caller, beat)
  const [jobs, cancel] = await Promise.all([waitingJobs(row, beat.freeSlots), tendRunning(caller, beat.running)])
  const interval = config.PLAT_HEARTBEAT_INTERVAL_SECONDS
  return {
    idle: jobs.length === 0 && cancel.length === 0 && row.isSteady,
    answer: {
      heartbeatIntervalSeconds: row.isSteady ? interval : Math.min(interval, secondBeatSeconds),
      jobs,
      cancel,
      serverTime: iso(now()),
    },
  }
}

/** The first read may be stale: writes are conditional, and it never causes a rejection. */
async function currentCluster(
  { organisationId, clusterId, relayId }: RelayCaller,
  attempt: number,
): Promise<ClusterRecord> {
  if (attempt === 0) {
    const lagging = await Cluster.find(organisationId, clusterId, { stale: true })
    if (lagging?.relayId === relayId) return lagging
  }
  const row = await Cluster.find(organisationId, clusterId)
  if (row?.relayId !== relayId) throw platformError('unauthenticated')
  return row
}

async function recordBeat(caller: RelayCaller, beat: Heartbeat): Promise<ClusterRecord> {
  const nonce = newNonce()
  for (let attempt = 0; attempt < attempts; attempt++) {
    const row = await currentCluster(caller, attempt)
    // Our own write after a lost response is a success; any other use of the token is a replay.
    if (row.beatNonce === nonce) return row
    const recentTokens = consumeHeartbeatNonce(row.recentTokens, caller, now())
    if (recentTokens === undefined) throw platformError('unauthenticated')
    const heard = { ...(await heardFrom(row, beat)), recentTokens, nonce }
    const written = await writeBeat(row, heard)
    if (written !== undefined) return written
  }
  throw storeContention()
}

/** Changes of a cluster by a heartbeat. Node names are read only if a status changed. */
async function heardFrom(row: ClusterRecord, beat: Heartbeat) {
  const hash = nodesHash(beat.nodes)
  if (hash === row.nodesHash) return { presence: presenceAfter(row, row.nodesOnline), nodes: undefined }
  const known = parseNodes(await get(keys.nodes(row.organisationId, row.id)))
  const online = new Set(beat.nodes.filter(({ status }) => status === 'Online').map(({ id }) => id))
  const nodes = known.map(({ id, name }) => ({
    id,
    name,
    status: online.has(id) ? ('Online' as const) : ('Offline' as const),
  }))
  const nodesOnline = countOnline(nodes)
  return { presence: { ...presenceAfter(row, nodesOnline), nodesHash: hash, nodesOnline }, nodes }
}

/** The first heartbeat after Offline does not change the status; the second one does. */
function presenceAfter(row: ClusterRecord, nodesOnline: number) {
  const before = clusterStatus({ ...row, isSteady: true }, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  const isFirst = before === 'Offline' && nodesOnline > 0
  return { lastSeenAtMs: now(), saidGoodbye: false, isSteady: !isFirst }
}

type Heard = Awaited<ReturnType<typeof heardFrom>> & { recentTokens: string; nonce: string }

/** The new record, or undefined after a concurrent change. */
async function writeBeat(row: ClusterRecord, heard: Heard): Promise<ClusterRecord | undefined> {
  const { presence, nodes, recentTokens, nonce } = heard
  const interval = config.PLAT_HEARTBEAT_INTERVAL_SECONDS
  const status = clusterStatus({ ...row, ...presence }, now(), interval)
  const dueAtMs = nextCheckAfterHeartbeat(now(), row.dueAtMs, interval)
  const due = dueAtMs === undefined ? {} : keys.due(row.id, dueAtMs)
  const key = keys.cluster(row.organisationId, row.id)
  const change = { set: { ...presence, recentTokens, beatNonce: nonce, ...due } }
  const asRead = { beatNonce: { is: row.beatNonce }, relayId: { is: row.relayId } }
  if (status === row.status && nodes === undefined) {
    const item = await tryUpdate(key, change, asRead)
    return item && parseCluster(item)
  }
  const filed = { set: { ...change.set, ...statusIndexKeys(row, status) } }
  const refusal = await commit(system(row.organisationId), {
    writes: [
      patch(key, filed, { ...asRead, status: { is: row.status } }),
      ...(nodes === undefined ? [] : [replace(keys.nodes(row.organisationId, row.id), nodesItem(nodes))]),
      ...(status === row.status ? [] : [statusCountWrite(row, row.status, status)]),
    ],
    ...(status !== row.status && { events: [statusEvent(row, status)] }),
  })
  return refusal === undefined ? { ...row, ...presence } : undefined
}

/** The oldest jobs of the inbox, up to the relay's free slots. No call if the record shows an empty inbox. */
async function waitingJobs(row: ClusterRecord, freeSlots: number): Promise<string[]> {
  if (row.waitingJobs <= 0 || freeSlots === 0) return []
  const { items } = await query({ pk: keys.inbox(row.id, '').pk, limit: freeSlots })
  return items.map((item) => String(item['sk']))
}

/** Renews the leases of the relay's running jobs; returns those to cancel. */
async function tendRunning(caller: RelayCaller, jobIds: readonly string[]): Promise<string[]> {
  if (jobIds.length === 0) return []
  const unique = [...new Set(jobIds)]
  const jobs = (await getMany(unique.map((id) => keys.job(caller.organisationId, id)))).map(parseRelayed)
  const isOurs = (job: JobRecord | undefined) => job?.status === 'Running' && job.relayId === caller.relayId
  const running = jobs.filter((job) => job !== undefined).filter(isOurs)
  await forEachLimit(renewedAtOnce, running, renewLease)
  return unique.filter((_, index) => !isOurs(jobs[index]) || jobs[index]?.cancelRequestedAtMs !== undefined)
}

/** The relay stops: its cluster becomes Offline at once. Two calls. */
export async function goodbye(caller: RelayCaller, { reason }: { reason: string }): Promise<void> {
  log('info', 'Relay signed off', { clusterId: caller.clusterId, reason })
  const nonce = newNonce()
  for (let attempt = 0; attempt < attempts; attempt++) {
    const row = await currentCluster(caller, attempt)
    if (row.beatNonce === nonce) return
    const recentTokens = consumeHeartbeatNonce(row.recentTokens, caller, now())
    if (recentTokens === undefined) throw platformError('unauthenticated')
    const presence = { saidGoodbye: true, lastSeenAtMs: now(), isSteady: true }
    if (await writeBeat(row, { presence, nodes: undefined, recentTokens, nonce })) return
  }
  throw storeContention()
}
