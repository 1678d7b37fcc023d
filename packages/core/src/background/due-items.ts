import { type BatchRecord, countEnded, parseBatch, readJobsOf } from '../jobs/batches/record.ts'
import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import {
  type ClusterRecord,
  countedPresence,
  statusIndexKeys,
  parseCluster,
  statusEvents,
  currentStatus,
  statusCountWrite,
} from '../clusters/record.ts'
import { observeNow } from '../clusters/downtime.ts'
import { isAhead, now } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, getConsistent, getMany, type Item, patch, query } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { enforceDeadline, enforceDeadlines } from '../jobs/deadlines.ts'
import { isLate, enqueueOrRecord, unrecordedEnds } from '../jobs/recording.ts'
import { isTerminal, parseJob } from '../jobs/record.ts'
import { log } from '../log.ts'
import { requeueIfStalled } from '../operations/operation.ts'
import { newNonce } from '../id.ts'
import { forEachLimit } from '../lib/async.ts'
import { recordMetric } from '../lib/metrics.ts'
import { maxSingleNotifications, reportPostponed } from '../notifications/postponed.ts'
import { parseSummary, replaceSummary } from '../notifications/sweep-summary.ts'
import { checkOutbox } from '../outbox/outbox-check.ts'
import { SweepSummary } from '../outbox/record.ts'
import { isOperation, parseOperation } from '../operations/record.ts'
import { purgePreferences } from '../accounts/purge-preferences.ts'
import { outboxRetryMs, enqueueBatch, enqueueProjections, enqueueWebhook } from '../aws/queues.ts'
import { deleteOrphanOf, isOrphanedSecret } from '../identity-providers/orphaned-secrets.ts'
import { clusterStatus, nextCheckAfterSweep } from '../clusters/status.ts'
import { advance } from '../relays/update-advance.ts'
import { parseRelayUpdate } from '../relays/update-record.ts'

const pageSize = 50
const clusterConcurrency = 100
const relayUpdateConcurrency = 10
const maxSummaryAttempts = 3

/**
 * The record of a cluster without a status change is not updated if its next check is due within this time, because the
 * next sweeps check the cluster anyway.
 */
const soonMs = 60_000

/** The longest delay of items whose processing does not check the due time again. */
const maxDelayMs = 20 * 60_000

interface SweepState {
  isFull: boolean
  enqueuedOrganisations: Set<string>
  removedClusters: Item[]
  usedTokens: Item[]
  clusters: Item[]
  cooldowns: Item[]
  relayUpdates: Item[]
  /** The item with the earliest due time in each partition. */
  oldestItems: Item[]
  failureCount: number
}

export async function sweepClusters(): Promise<void> {
  await observeNow()
  await sweepDue((key) => keys.isCluster(key) || keys.isNotificationCooldown(key) || keys.isRelayUpdate(key))
}

export async function sweepDue(isSwept: (key: keys.Key) => boolean, isFull = false): Promise<SweepState> {
  const state: SweepState = {
    isFull,
    enqueuedOrganisations: new Set(),
    removedClusters: [],
    usedTokens: [],
    clusters: [],
    cooldowns: [],
    relayUpdates: [],
    oldestItems: [],
    failureCount: 0,
  }
  const shards = Array.from({ length: keys.dueShardCount }, (_, shard) =>
    sweepShard(keys.duePartition(shard), state, isSwept),
  )
  const counts = await Promise.all(shards)
  await checkClusters(state)
  for (const [id, items] of Map.groupBy(state.cooldowns, ({ pk }) => keys.organisationOf(String(pk)))) {
    await processAndCount(state, { pk: id }, () => reportPostponed(id, items))
  }
  await forEachLimit(relayUpdateConcurrency, state.relayUpdates, (item) =>
    processAndCount(state, item, () => advance(parseRelayUpdate(item))),
  )
  const itemCount = counts.reduce((sum, count) => sum + count, 0)
  if (itemCount > 0) log('info', 'Sweep completed', { itemCount })
  return state
}

async function sweepShard(pk: string, state: SweepState, isSwept: (key: keys.Key) => boolean): Promise<number> {
  const to = `${keys.dueSortKey(now())}~`
  let itemCount = 0
  let after: Item | undefined
  do {
    const page = await query({
      index: 'due',
      pk,
      ...(!state.isFull && { to }),
      limit: pageSize,
      ...(after && { after }),
    })
    if (after === undefined) state.oldestItems.push(...page.items.slice(0, 1))
    const items = page.items.filter((item) => !mustWait(item))
    const dueKeys = items.map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) })).filter(isSwept)
    await processAll(dueKeys, state)
    itemCount += dueKeys.length
    after = page.next
  } while (after !== undefined)
  return itemCount
}

/** Items of other types may be processed early, because their processing checks the clock again. */
function mustWait(item: Item): boolean {
  const isTimed = isCooldown(item) || item['sk'] === 'USER' || isOrphanedSecret(item)
  return isTimed && isAhead(keys.dueMsOf(String(item['duesk'])), maxDelayMs)
}

/**
 * Processes the items, or collects them in `state`. Enqueues each organisation once per sweep, however many outbox
 * records are due. Webhook workers set the next due time themselves.
 */
async function processAll(dueKeys: readonly keys.Key[], state: SweepState): Promise<void> {
  const { enqueuedOrganisations, removedClusters, usedTokens, clusters, cooldowns, relayUpdates } = state
  const [outboxKeys, webhookKeys] = [dueKeys.filter(keys.isOutbox), dueKeys.filter(keys.isWebhook)]
  const otherKeys = dueKeys.filter((key) => !keys.isOutbox(key) && !keys.isWebhook(key))
  const organisationIds = new Set(outboxKeys.map(({ pk }) => keys.organisationOf(pk)))
  const newIds = [...organisationIds].filter((organisationId) => !enqueuedOrganisations.has(organisationId))
  for (const organisationId of newIds) enqueuedOrganisations.add(organisationId)
  const items = (await getConsistent(otherKeys)).filter((item) => item !== undefined)
  removedClusters.push(...items.filter(isRemovedCluster))
  usedTokens.push(...items.filter(isApiToken))
  clusters.push(...items.filter(isCluster))
  cooldowns.push(...items.filter(isCooldown))
  relayUpdates.push(...items.filter(isRelayUpdate))
  await Promise.all([
    ...newIds.map((id) => enqueueProjections(id)),
    ...webhookKeys.map(({ pk, sk }) => enqueueWebhook({ organisationId: keys.organisationOf(pk), webhookId: sk })),
    ...items.filter((item) => !isDeferred(item)).map((item) => processAndCount(state, item, processItem)),
  ])
}

const isRemovedCluster = ({ pk, sk }: Item): boolean => sk === 'CLUSTER' && String(pk).startsWith('PURGE#')
const isApiToken = ({ sk }: Item): boolean => sk === 'TOKEN'
const isCluster = (item: Item): boolean => keys.isCluster({ pk: String(item['pk']), sk: '' })
const isRelayUpdate = (item: Item): boolean => keys.isRelayUpdate({ pk: String(item['pk']), sk: '' })
const isCooldown = (item: Item): boolean => keys.isNotificationCooldown({ pk: String(item['pk']), sk: '' })
/** These items are processed together, after all others. */
const isDeferred = (item: Item): boolean =>
  isRemovedCluster(item) || isApiToken(item) || isCluster(item) || isCooldown(item) || isRelayUpdate(item)

/** Logs an error instead of throwing it, so that the other items are processed. Returns whether the work succeeded. */
export async function processSafely(item: Item, work: (item: Item) => Promise<unknown>): Promise<boolean> {
  try {
    await work(item)
    return true
  } catch (error) {
    recordMetric('SweepFailures')
    log('error', 'Sweep failed for an item', { pk: item['pk'], sk: item['sk'], error: String(error) })
    return false
  }
}

async function processAndCount(state: SweepState, item: Item, work: (item: Item) => Promise<unknown>): Promise<void> {
  if (!(await processSafely(item, work))) state.failureCount++
}

async function processItem(item: Item): Promise<void> {
  if (isOperation(item)) return requeueIfStalled(parseOperation(item))
  if (keys.isJob({ sk: String(item['sk']) })) return enforceDeadline(parseJob(item))
  if (item['sk'] === 'BATCH') return checkBatch(parseBatch(item))
  if (item['sk'] === 'USER') return purgePreferences(item)
  if (item['sk'] === 'OUTBOX-CHECK') return checkOutbox(item)
  if (isOrphanedSecret(item)) await deleteOrphanOf(item)
}

/** Summarises the changes of each organisation first, because many changes share one notification per status. */
async function checkClusters(state: SweepState): Promise<void> {
  const records: ClusterRecord[] = []
  await Promise.all(
    state.clusters.map((item) => processAndCount(state, item, async () => void records.push(parseCluster(item)))),
  )
  const changedRecords = records.filter((record) => currentStatus(record) !== record.status)
  const summaries = await summariesOf(Map.groupBy(changedRecords, ({ organisationId }) => organisationId))
  await forEachLimit(clusterConcurrency, records, (record) =>
    processAndCount(state, { ...keys.cluster(record.organisationId, record.id) }, () =>
      checkCluster(record, summaries.get(record)),
    ),
  )
}

type Summaries = Map<ClusterRecord, SweepSummary | undefined>

async function summariesOf(changedRecords: ReadonlyMap<string, ClusterRecord[]>): Promise<Summaries> {
  const storedItems = await getMany([...changedRecords.keys()].map((id) => keys.sweepSummary(id, 'CHANGES')))
  const summaries: Summaries = new Map()
  await Promise.all(
    [...changedRecords].map(([id, records], index) => addSummaries(id, records, storedItems[index], summaries)),
  )
  return summaries
}

async function addSummaries(
  organisationId: string,
  records: readonly ClusterRecord[],
  storedItem: Item | undefined,
  summaries: Summaries,
): Promise<void> {
  const key = keys.sweepSummary(organisationId, 'CHANGES')
  let item = storedItem
  for (let attempt = 0; attempt < maxSummaryAttempts; attempt++) {
    const lastSummary = parseSummary(item, SweepSummary)
    const isCovered = (record: ClusterRecord) => lastSummary !== undefined && wasDueAt(record, lastSummary.atMs)
    const summary = summaryOf(records.filter((record) => !isCovered(record)))
    if (summary === undefined || (await replaceSummary(key, item, summary.atMs, summary))) {
      for (const record of records) summaries.set(record, isCovered(record) ? lastSummary?.summary : summary)
      return
    }
    item = await get(key)
  }
}

/** Whether a sweep at `atMs` would have found the same change. */
const wasDueAt = (record: ClusterRecord, atMs: number): boolean =>
  record.dueAtMs !== 0 &&
  record.dueAtMs <= atMs &&
  countedPresence(record).silence.sinceMs < atMs &&
  clusterStatus(countedPresence(record), atMs) === currentStatus(record)

function summaryOf(records: readonly ClusterRecord[]): SweepSummary | undefined {
  const changes = records.flatMap((record) => statusEvents(record, currentStatus(record)).map(({ data }) => data))
  if (changes.length <= maxSingleNotifications) return undefined
  const statuses = [...Map.groupBy(changes, ({ status }) => status)].map(([status, { length: count }]) => {
    const names = changes.filter((change) => change.status === status).map(({ name }) => name)
    return [status, { count, names: names.toSorted().slice(0, 10) }] as const
  })
  return { id: newNonce(), atMs: now(), statuses: Object.fromEntries(statuses) }
}

async function checkCluster(record: ClusterRecord, summary: SweepSummary | undefined): Promise<void> {
  const status = currentStatus(record)
  const events = statusEvents(record, status)
  const dueAtMs = nextCheckAfterSweep(countedPresence(record), now())
  const correctedTimes = correctedTimesOf(record)
  const areTimesCorrect = Object.keys(correctedTimes).length === 0
  if (events.length === 0 && areTimesCorrect && dueAtMs !== undefined && dueAtMs < now() + soonMs) return
  const dueAttributes = dueAtMs === undefined ? {} : keys.dueIndexKeys(record.id, dueAtMs)
  const change = {
    set: {
      ...dueAttributes,
      ...correctedTimes,
      ...(status === record.status ? {} : statusIndexKeys(record, status)),
    },
    remove: dueAtMs === undefined ? ['duepk', 'duesk'] : [],
  }
  // If a heartbeat arrives concurrently, the condition fails and the heartbeat's status takes precedence.
  const condition = {
    lastSeenAtMs: { is: record.lastSeenAtMs },
    status: { is: record.status },
    channelId: unchangedCondition(record.channelId),
    channelClosedAtMs: unchangedCondition(record.channelClosedAtMs),
  }
  await commit(system(record.organisationId), {
    writes: [
      patch(keys.cluster(record.organisationId, record.id), change, condition),
      ...(status === record.status ? [] : [statusCountWrite(record, record.status, status)]),
    ],
    ...(events.length > 0 && { events }),
    ...(summary && { sweep: summary }),
  })
}

/** Returns the current time in place of each time in the future, which can exist after the clock was set back. */
function correctedTimesOf({
  lastSeenAtMs,
  channelOpenedAtMs,
  channelClosedAtMs,
}: ClusterRecord): Partial<ClusterRecord> {
  const entries = Object.entries({ lastSeenAtMs, channelOpenedAtMs, channelClosedAtMs })
  return Object.fromEntries(entries.filter(([, ms]) => Number(ms) > now()).map(([name]) => [name, now()]))
}

/**
 * Batches stay due until they are finished, because the due index does not contain their jobs. A message about a batch
 * that is not fully stored, is cancelled or limits its jobs may be lost, so it is sent again.
 */
async function checkBatch(batch: BatchRecord): Promise<void> {
  const { organisationId, id, starts, maxConcurrency, maxErrors, cancelRequestedAtMs } = batch
  const isAdvancing = [starts, maxConcurrency, maxErrors, cancelRequestedAtMs].some((value) => value !== undefined)
  if (isAdvancing) await enqueueBatch({ organisationId, batchId: id })
  const retryMs = now() + 2 * outboxRetryMs
  const jobs = await readJobsOf(organisationId, id)
  const checkMs = (await enforceDeadlines(jobs)) ?? retryMs
  // The records of ended jobs may have been removed. Until all jobs are stored, the count may be too low.
  const openCount = batch.submittedCount - batch.expanded + jobs.filter((job) => !isTerminal(job)).length
  const areAllCounted = countEnded(batch) + openCount >= batch.submittedCount
  if (!areAllCounted) {
    const lateJobs = await unrecordedEnds(organisationId, jobs.filter(isLate))
    await enqueueOrRecord(
      organisationId,
      lateJobs.map((job) => job.id),
    )
  }
  const isRetryNeeded = isAdvancing || !areAllCounted
  const change = { set: keys.dueIndexKeys(id, isRetryNeeded ? Math.min(checkMs, retryMs) : checkMs) }
  await transact([patch(keys.batch(organisationId, id), change, { finishedAtMs: { absent: true } })])
}
