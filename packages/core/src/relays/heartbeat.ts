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

/** Beats and goodbyes of relays (D20, D21). */

/** Beats of one relay come one after another; a second at the same moment looks again. */
const attempts = 4
/** A beat may name a thousand jobs. */
const renewedAtOnce = 25
/** A cluster that comes back needs two beats; the second is asked for at once. */
const secondBeatSeconds = 1

/**
 * One beat: presence, node statuses, leases of running jobs; answers work. One read and one write when there is nothing
 * to do. `idle` says that the answer may be held back until there is.
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

/** The first look may lag: what it decides is written only if the row is still as it was, and it refuses nobody. */
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
    // Our own write, whose acknowledgement was lost, is a success; any other use of the token is a replay.
    if (row.beatNonce === nonce) return row
    const recentTokens = consumeHeartbeatNonce(row.recentTokens, caller, now())
    if (recentTokens === undefined) throw platformError('unauthenticated')
    const heard = { ...(await heardFrom(row, beat)), recentTokens, nonce }
    const written = await writeBeat(row, heard)
    if (written !== undefined) return written
  }
  throw storeContention()
}

/** What a beat tells about a cluster. Node names are read only when a status differs from the last report. */
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

/** The first beat after Offline does not count yet; the second does (D20). */
function presenceAfter(row: ClusterRecord, nodesOnline: number) {
  const before = clusterStatus({ ...row, isSteady: true }, now(), config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  const isFirst = before === 'Offline' && nodesOnline > 0
  return { lastSeenAtMs: now(), saidGoodbye: false, isSteady: !isFirst }
}

type Heard = Awaited<ReturnType<typeof heardFrom>> & { recentTokens: string; nonce: string }

/** The row after the beat, or undefined if it was no longer as read. */
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
    steps: [
      patch(key, filed, { ...asRead, status: { is: row.status } }),
      ...(nodes === undefined ? [] : [replace(keys.nodes(row.organisationId, row.id), nodesItem(nodes))]),
      ...(status === row.status ? [] : [statusCountWrite(row, row.status, status)]),
    ],
    ...(status !== row.status && { events: [statusEvent(row, status)] }),
  })
  return refusal === undefined ? { ...row, ...presence } : undefined
}

/** The oldest jobs of the inbox, as many as the relay has room for. No call where the row says that it is empty. */
async function waitingJobs(row: ClusterRecord, freeSlots: number): Promise<string[]> {
  if (row.waitingJobs <= 0 || freeSlots === 0) return []
  const { items } = await query({ pk: keys.inbox(row.id, '').pk, limit: freeSlots })
  return items.map((item) => String(item['sk']))
}

/** Renews the leases of the jobs that a relay says it runs; answers those that it shall stop. */
async function tendRunning(caller: RelayCaller, jobIds: readonly string[]): Promise<string[]> {
  if (jobIds.length === 0) return []
  const unique = [...new Set(jobIds)]
  const jobs = (await getMany(unique.map((id) => keys.job(caller.organisationId, id)))).map(parseRelayed)
  const isOurs = (job: JobRecord | undefined) => job?.status === 'Running' && job.relayId === caller.relayId
  const running = jobs.filter((job) => job !== undefined).filter(isOurs)
  await forEachLimit(renewedAtOnce, running, renewLease)
  return unique.filter((_, index) => !isOurs(jobs[index]) || jobs[index]?.cancelRequestedAtMs !== undefined)
}

/** The relay stops: its cluster is Offline at once. Two calls. */
export async function goodbye(caller: RelayCaller, { reason }: { reason: string }): Promise<void> {
  log('info', 'A relay says goodbye', { clusterId: caller.clusterId, reason })
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
