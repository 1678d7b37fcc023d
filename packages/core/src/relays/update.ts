import {
  type RelayUpdate,
  type RelayUpdateCluster,
  relayUpdateClusterLimit,
  type RelayUpdateClusterStatus,
  type RelayUpdateCreation,
} from '@platform/contract/relay-update'
import type { Target } from '@platform/contract/target'
import gte from 'semver/functions/gte.js'
import valid from 'semver/functions/valid.js'
import { reauthorize } from '../accounts/current-rights.ts'
import type { Caller } from '../caller.ts'
import { now } from '../clock.ts'
import { clusterNameOf } from '../clusters/record.ts'
import { startOnTarget } from '../clusters/target.ts'
import { config } from '../config.ts'
import { countAllowedCall, perMinute } from '../db/call-limit.ts'
import { pageOfRange } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { paged, pageOfItems, type PageQuery } from '../db/paging.ts'
import {
  count,
  create as createItem,
  get,
  getConsistent,
  getMany,
  orThrow,
  patch,
  remove,
  upsert,
} from '../db/table.ts'
import { PlatformError, platformError, storeContentionError } from '../error.ts'
import { isId, newId } from '../id.ts'
import { labelsBetween, labelsOf } from '../labels/labels.ts'
import { commit } from '../outbox/commit.ts'
import { submitterOf } from '../submitter.ts'
import { activeRelease, type InstalledRelease, parseUpdateState } from '../updates/record.ts'
import { advance } from './update-advance.ts'
import {
  expirySeconds,
  memberExpiryWrites,
  memberWrites,
  membersOf,
  parseRelayUpdate,
  progressAttributes,
  reasonOf,
  type RelayUpdateRecord,
  relayUpdateView,
  type State,
  statusOf,
} from './update-record.ts'

/** At most one relay update of an organisation runs at a time. */
export async function create(caller: Caller, request: RelayUpdateCreation): Promise<RelayUpdate> {
  const { organisationId } = caller
  const itemKeys = [keys.updateState(), keys.runningRelayUpdate(organisationId)]
  const [, stateItem, runningItem] = await reauthorize(caller, ['clusters:admin'], itemKeys)
  const release = offeredRelease(activeRelease(parseUpdateState(stateItem)), request.version)
  if (runningItem !== undefined) throw alreadyRunningError(runningItem['id'])
  await countAllowedCall(perMinute(`relay-updates:${organisationId}`, config.PLAT_LIMIT_BATCH_PER_MINUTE))
  const target = request.target ?? { selector: request.selector }
  const options = { target, expectedCount: request.expectedCount, limit: relayUpdateClusterLimit }
  return startOnTarget(caller, options, (clusterIds) => start(caller, { ...request, target, clusterIds, release }))
}

type Program = { version: string; relay: NonNullable<InstalledRelease['relay']> }

function offeredRelease({ version, relay }: InstalledRelease, requestedVersion = version): Program {
  if (relay === undefined) throw platformError('relay_signature_missing')
  if (requestedVersion === version) return { version, relay }
  throw new PlatformError(
    'version_not_available',
    `The platform offers only version ${version} of the relay. Update the platform to offer another version.`,
  )
}

const alreadyRunningError = (id: unknown): PlatformError =>
  new PlatformError(
    'relay_update_running',
    `The relay update ${String(id)} is running. Wait until it ends, or cancel it.`,
  )

interface Start extends Pick<RelayUpdateCreation, 'canary' | 'maxConcurrent'> {
  target: Target
  clusterIds: readonly string[]
  release: Program
}

async function start(caller: Caller, { target, clusterIds, release, ...limits }: Start): Promise<RelayUpdate> {
  const { organisationId } = caller
  const { canary = 1, maxConcurrent = 50 } = limits
  const createdAtMs = now()
  const id = newId('rupd', createdAtMs)
  const states = await initialStates(organisationId, clusterIds, release.version)
  const progress = { states, reasons: {} }
  const settings = { ...release.relay, version: release.version, canary, maxConcurrent, ...submitterOf(caller) }
  const fields = { id, ...settings, status: 'Running' as const, revision: 0, createdAtMs }
  const response = relayUpdateView({ ...fields, ...progress, target, cursor: 0, organisationId })
  await commit(caller, {
    writes: [
      orThrow(
        upsert(keys.runningRelayUpdate(organisationId), { set: { id } }, { id: { absent: true } }),
        'relay_update_running',
      ),
      createItem(keys.relayUpdate(organisationId, id), {
        ...fields,
        ...progressAttributes(progress),
        target: JSON.stringify(target),
        gsi1pk: keys.relayUpdatesOf(organisationId),
        ...keys.dueIndexKeys(id, createdAtMs),
      }),
      ...memberWrites(organisationId, id, clusterIds),
    ],
    response,
    audit: {
      action: 'relay_update.create',
      resource: id,
      detail: `${release.version} for ${clusterIds.length} clusters`,
    },
  })
  return response
}

/** For more clusters than this, reading the labels of all between the first and the last one takes fewer requests. */
const lookupLimit = 1000

/** The labels may be outdated, but a relay that already has the version reports it. */
async function initialStates(organisationId: string, ids: readonly string[], version: string): Promise<State[]> {
  const sortedIds = ids.toSorted()
  const labels =
    ids.length > lookupLimit
      ? await labelsBetween(organisationId, sortedIds[0], sortedIds.at(-1))
      : await labelsOf(organisationId, ids)
  return ids.map((id) => {
    const relayVersion = labels.get(id)?.['platform/relay-version'] ?? ''
    return valid(relayVersion) !== null && gte(relayVersion, version) ? 'A' : 'P'
  })
}

const rangeOf = (organisationId: string) => ({ index: 'gsi1', pk: keys.relayUpdatesOf(organisationId) }) as const

export const list = ({ organisationId }: Caller, query: PageQuery) =>
  paged(['relay-updates', organisationId], query, async (page) => {
    const range = rangeOf(organisationId)
    const { keys: pageKeys, totalCount, next } = await pageOfRange(range, () => count(range), page)
    const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
    const records = items.filter((item) => item !== undefined).map(parseRelayUpdate)
    return { items: records.map(relayUpdateView), totalCount, next }
  })

async function readRecord({ organisationId }: Caller, id: string): Promise<RelayUpdateRecord> {
  const item = isId('rupd', id) ? await get(keys.relayUpdate(organisationId, id)) : undefined
  if (item === undefined) throw platformError('relay_update_not_found')
  return parseRelayUpdate(item)
}

export const read = async (caller: Caller, id: string): Promise<RelayUpdate> =>
  relayUpdateView(await readRecord(caller, id))

/** Positions never change, unlike states, so a cluster that keeps its status is on exactly one page. */
const order = { positionOf: String, isAfter: (position: number, before: string) => position > Number(before) }

export async function listClusters(
  caller: Caller,
  id: string,
  { status, ...query }: PageQuery & { status?: RelayUpdateClusterStatus | undefined },
) {
  const record = await readRecord(caller, id)
  const positions = record.states.flatMap((state, position) =>
    status === undefined || statusOf(state) === status ? [position] : [],
  )
  return paged(['relay-update', caller.organisationId, id, status], query, async (page) => {
    const { items, ...rest } = pageOfItems(positions, page, String, order)
    return { items: await clustersAt(record, items), ...rest }
  })
}

async function clustersAt(record: RelayUpdateRecord, positions: readonly number[]): Promise<RelayUpdateCluster[]> {
  if (positions.length === 0) return []
  const members = await membersOf(record)
  const ids = positions.map((position) => members[position] ?? '')
  const items = await getMany(
    ids.map((id) => keys.cluster(record.organisationId, id)),
    { mayBeStale: true },
  )
  return ids.map((clusterId, index) => {
    const position = positions[index] ?? 0
    const reason = reasonOf(record, position, items[index])
    const name = clusterNameOf(items[index]) ?? ''
    return {
      clusterId,
      name,
      status: statusOf(record.states[position] ?? 'P'),
      ...(reason !== undefined && { reason }),
    }
  })
}

const maxAttempts = 8

const stillOfferedError = (): PlatformError =>
  new PlatformError(
    'conflict',
    'The update is cancelled, but relays may still have an offer. Repeat the request until it succeeds.',
    { retryAfterSeconds: 1 },
  )

/** Withdraws the offers before it returns. After a failure, the sweep or a repeated request withdraws them. */
export async function cancel(caller: Caller, id: string): Promise<RelayUpdate> {
  const { organisationId } = caller
  const key = keys.relayUpdate(organisationId, id)
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const [, item] = await reauthorize(caller, ['clusters:admin'], isId('rupd', id) ? [key] : [])
    if (item === undefined) throw platformError('relay_update_not_found')
    const record = parseRelayUpdate(item)
    if (record.status !== 'Running' && record.status !== 'Cancelled') throw platformError('relay_update_finished')
    const set = { status: 'Cancelled' as const, finishedAtMs: record.finishedAtMs ?? now() }
    const cancelledRecord = { ...record, ...set }
    const failure =
      record.status === 'Running' &&
      (await commit(caller, {
        writes: [
          patch(
            key,
            { set: { ...set, ...keys.dueIndexKeys(id, now()), ttl: expirySeconds() }, add: { revision: 1 } },
            { revision: { is: record.revision } },
          ),
          ...memberExpiryWrites(record),
          remove(keys.runningRelayUpdate(organisationId), { id: { is: id } }),
        ],
        audit: { action: 'relay_update.cancel', resource: id },
      }))
    if (failure) continue
    const settledItem = await get(key)
    if (settledItem !== undefined && !(await advance(parseRelayUpdate(settledItem)))) throw stillOfferedError()
    return relayUpdateView(cancelledRecord)
  }
  throw storeContentionError()
}
