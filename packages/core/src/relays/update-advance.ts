import { wakeRelay } from '../aws/wake-relay.ts'
import { userWithPermission, userUnchanged } from '../accounts/user.ts'
import { system } from '../caller.ts'
import { elapsedMs, now } from '../clock.ts'
import { clusterNameOf, type ClusterRecord, currentStatus, parseCluster } from '../clusters/record.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { check, get, getConsistent, getMany, type Item, patch, remove, tryUpdate, type WriteItem } from '../db/table.ts'
import { chunk, forEachLimit } from '../lib/async.ts'
import { commit } from '../outbox/commit.ts'
import type { Effects } from '../outbox/record.ts'
import { activeRelease, parseUpdateState } from '../updates/record.ts'
import { markerFields, offerText } from './update-offer.ts'
import {
  addReason,
  countsOf,
  expirySeconds,
  memberExpiryWrites,
  membersOf,
  parseRelayUpdate,
  positionsOf,
  type Progress,
  progressAttributes,
  type RelayUpdateRecord,
  type State,
} from './update-record.ts'

/** The maximum number of clusters that one transaction changes. */
const maxWrites = 80
/** The maximum number of waiting clusters that one step examines. */
const maxExaminedClusters = 500
const maxSteps = 20
const maxWorkMs = 10_000
const maxConcurrentWakes = 10
const maxRollbackPercent = 5
const [busyMs, idleMs] = [5000, 60_000]

/** The next state of an update, and the writes of clusters that it requires. */
interface Draft extends Progress {
  record: RelayUpdateRecord
  ids: readonly string[]
  cursor: number
  writes: WriteItem[]
  offeredIds: string[]
}

/**
 * Collects results, and makes further offers. Each step is one transaction, which fails if another worker has advanced
 * or ended the update. An ended update withdraws its offers. Returns false if steps remain, for the sweep.
 */
export async function advance(update: RelayUpdateRecord): Promise<boolean> {
  const untilMs = elapsedMs() + maxWorkMs
  let record: RelayUpdateRecord | undefined = update
  for (let step = 0; record !== undefined && step < maxSteps && elapsedMs() < untilMs; step++) {
    const draft: Draft = {
      record,
      ids: await membersOf(record),
      states: [...record.states],
      reasons: { ...record.reasons },
      cursor: record.cursor,
      writes: [],
      offeredIds: [],
    }
    await collect(draft)
    record = record.status === 'Running' ? await proceed(draft) : await withdraw(draft)
  }
  return record === undefined
}

const clusterKey = ({ record, ids }: Draft, position: number): keys.Key =>
  keys.cluster(record.organisationId, ids[position] ?? '')

const stateOfResult: Record<string, State> = { completed: 'C', rolledBack: 'R', skipped: 'S' }

async function collect(draft: Draft): Promise<void> {
  const { record, states, writes } = draft
  const isRunning = record.status === 'Running'
  const positions = positionsOf(draft, 'O')
  const items = await getMany(positions.map((position) => clusterKey(draft, position)))
  for (const [index, position] of positions.entries()) {
    if (writes.length >= maxWrites) return
    const cluster = items[index] && parseCluster(items[index])
    const [result = '', ...reason] = cluster?.relayUpdateResult?.split(' ') ?? []
    if (cluster === undefined) states[position] = 'D'
    else if (cluster.relayUpdateId !== record.id) {
      // Another relay has enrolled.
      if (isRunning) states[position] = 'P'
    } else if (result !== '' || !isRunning) {
      states[position] = stateOfResult[result] ?? 'O'
      addReason(draft, position, reason.join(' '))
      const condition = {
        relayUpdateId: { is: record.id },
        relayUpdateResult: unchangedCondition(cluster.relayUpdateResult),
      }
      writes.push(patch(clusterKey(draft, position), { remove: markerFields }, condition))
    }
  }
}

async function proceed(draft: Draft): Promise<RelayUpdateRecord | undefined> {
  const { record, writes } = draft
  const { organisationId, createdBy } = record
  const [userItem, stateItem] = await getConsistent([keys.user(organisationId, createdBy), keys.updateState()])
  const creator = await userWithPermission(userItem, 'clusters:admin')
  const platform = parseUpdateState(stateItem)
  const isUpdating = platform.jobId !== undefined
  const { version, relay } = activeRelease(platform)
  const statusReason =
    (await rollbackReason(draft)) ??
    (creator === undefined ? 'Its creator no longer has the permission clusters:admin.' : undefined) ??
    (isUpdating || relay?.sha256 === record.sha256
      ? undefined
      : `The platform now runs version ${version}. Create another update for its relay.`)
  if (statusReason !== undefined) return finish(draft, { status: 'Stopped', statusReason })
  if (!isUpdating) await offer(draft)
  const { pending, offered } = countsOf(draft)
  if (pending + offered === 0) return finish(draft, { status: 'Completed' })
  if (creator !== undefined && draft.offeredIds.length > 0)
    writes.push(check(keys.user(organisationId, createdBy), { pk: { present: true }, ...userUnchanged(creator) }))
  const isBusy = offered > 0 || isUpdating
  const result = await write(draft, keys.dueIndexKeys(record.id, now() + (isBusy ? busyMs : idleMs)))
  const isDone = result.isWritten && writes.length < maxWrites
  return isDone ? undefined : result.record
}

async function rollbackReason(draft: Draft): Promise<string | undefined> {
  const { completed, rolledBack, offered } = countsOf(draft)
  const isCanary = completed < draft.record.canary
  // Clusters that wait do not dilute the failures of those that were offered the version.
  const relayCount = completed + rolledBack + offered
  if (rolledBack === 0 || (!isCanary && rolledBack * 100 <= relayCount * maxRollbackPercent)) return undefined
  const positions = positionsOf(draft, 'R').slice(0, 10)
  const items = await getMany(positions.map((position) => clusterKey(draft, position)))
  const names = items.map((item, index) => clusterNameOf(item) ?? draft.ids[positions[index] ?? 0])
  const moreText = rolledBack > names.length ? ` and ${rolledBack - names.length} more` : ''
  const reason = positions.map((position) => draft.reasons[position]).find((text) => text !== undefined)
  const rule = isCanary
    ? 'before the canaries were complete'
    : `which is more than ${maxRollbackPercent} % of ${relayCount} relays`
  const text = `Relays of these clusters rolled back, ${rule}: ${names.join(', ')}${moreText}.`
  return reason === undefined ? text : `${text} First reason: ${reason}.`
}

/** Examines waiting clusters in turn, starting at the cursor, because many of them can be offline. */
async function offer(draft: Draft): Promise<void> {
  const { record, states, writes } = draft
  const { offered, completed } = countsOf(draft)
  const isCanary = completed < record.canary
  let freeSlots = Math.min(isCanary ? record.canary - completed : record.maxConcurrent, record.maxConcurrent) - offered
  if (freeSlots <= 0) return
  const pendingPositions = positionsOf(draft, 'P')
  const pendingFromCursor = [
    ...pendingPositions.filter((position) => position >= record.cursor),
    ...pendingPositions.filter((position) => position < record.cursor),
  ]
  for (const positions of chunk(pendingFromCursor.slice(0, maxExaminedClusters), 100)) {
    const items = await getMany(positions.map((position) => clusterKey(draft, position)))
    for (const [index, position] of positions.entries()) {
      draft.cursor = position
      if (freeSlots === 0 || writes.length >= maxWrites) return
      const cluster = items[index] && parseCluster(items[index])
      if (cluster === undefined) states[position] = 'D'
      else if (isOnline(cluster)) {
        states[position] = 'O'
        freeSlots--
        draft.offeredIds.push(cluster.id)
        writes.push(offerWrite(record, cluster))
      }
      draft.cursor = position + 1
    }
  }
}

const isOnline = (cluster: ClusterRecord): boolean =>
  cluster.relayId !== undefined && ['Healthy', 'Degraded'].includes(currentStatus(cluster))

/** Fails if another relay has enrolled. An offer of an ended update may remain and is replaced. */
const offerWrite = (record: RelayUpdateRecord, { id, relayId, relayUpdateId }: ClusterRecord): WriteItem =>
  patch(
    keys.cluster(record.organisationId, id),
    {
      set: { relayUpdateId: record.id, relayOffer: offerText(record) },
      remove: ['relayUpdateResult', 'relayUpdateProblem'],
    },
    { relayId: { is: relayId }, relayUpdateId: unchangedCondition(relayUpdateId) },
  )

type End = { status: 'Stopped'; statusReason: string } | { status: 'Completed'; statusReason?: never }

async function finish(draft: Draft, end: End): Promise<RelayUpdateRecord | undefined> {
  const { organisationId, id, version, createdBy } = draft.record
  const counts = countsOf(draft)
  const set = { ...end, statusReason: end.statusReason?.slice(0, 1000).toWellFormed(), finishedAtMs: now() }
  const { statusReason = '' } = set
  const data = { relayUpdateId: id, version, createdBy, completed: counts.completed, rolledBack: counts.rolledBack }
  draft.writes.push(
    remove(keys.runningRelayUpdate(organisationId), { id: { is: id } }),
    ...memberExpiryWrites(draft.record),
  )
  const effects: Effects =
    end.status === 'Completed'
      ? {
          audit: { action: 'relay_update.complete', resource: id },
          events: [{ name: 'relay.update_completed', subject: id, data }],
        }
      : {
          audit: { action: 'relay_update.stop', resource: id, detail: statusReason },
          events: [{ name: 'relay.update_stopped', subject: id, data: { ...data, reason: statusReason } }],
        }
  return (await write(draft, { ...set, ...keys.dueIndexKeys(id, now()), ttl: expirySeconds() }, effects)).record
}

/** The update stays due while a cluster has an offer. */
async function withdraw(draft: Draft): Promise<RelayUpdateRecord | undefined> {
  const { record, writes } = draft
  const isChanged = draft.states.some((state, position) => state !== record.states[position])
  if (writes.length > 0 || isChanged) return (await write(draft, {})).record
  const condition = { revision: { is: record.revision } }
  await tryUpdate(keys.relayUpdate(record.organisationId, record.id), { remove: ['duepk', 'duesk'] }, condition)
  return undefined
}

/**
 * If a condition fails, because another worker has changed the update or a cluster has changed, nothing is written.
 * Returns the stored update.
 */
async function write(
  draft: Draft,
  set: Item,
  effects: Effects = {},
): Promise<{ isWritten: boolean; record: RelayUpdateRecord | undefined }> {
  const { record, cursor, writes, offeredIds } = draft
  const key = keys.relayUpdate(record.organisationId, record.id)
  const change = { set: { ...set, ...progressAttributes(draft), cursor }, add: { revision: 1 } }
  const failure = await commit(system(record.organisationId), {
    writes: [patch(key, change, { revision: { is: record.revision } }), ...writes],
    ...effects,
  })
  if (failure === undefined) await forEachLimit(maxConcurrentWakes, offeredIds, wakeRelay)
  const item = await get(key)
  return { isWritten: failure === undefined, record: item && parseRelayUpdate(item) }
}
