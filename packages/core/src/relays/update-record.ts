import { type RelayUpdate, type RelayUpdateClusterStatus, relayUpdateStatuses } from '@platform/contract/relay-update'
import type { Target } from '@platform/contract/target'
import * as z from 'zod'
import { iso, nowSeconds, optionalTimestamp } from '../clock.ts'
import { parseCluster } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, patch, queryAll, type WriteItem } from '../db/table.ts'
import { chunk } from '../lib/async.ts'
import { compress, decompress } from '../lib/compression.ts'
import { jsonString } from '../lib/validate.ts'
import { submitterFields, submitterView } from '../submitter.ts'

/**
 * A relay update is one item with the state of every cluster, one letter each, so that each step of the update is one
 * conditional write. The ids of the clusters never change and are in items of their own.
 */
const statusOfState = {
  P: 'Pending',
  O: 'Offered',
  C: 'Completed',
  R: 'RolledBack',
  /** The relay had the version or a later one when the update was created. */
  A: 'Skipped',
  /** The cluster was removed. */
  D: 'Skipped',
  /** The relay cannot or need not install the version. */
  S: 'Skipped',
} as const satisfies Record<string, RelayUpdateClusterStatus>
export type State = keyof typeof statusOfState

const isState = (letter: string): letter is State => Object.hasOwn(statusOfState, letter)

export const statusOf = (state: State): RelayUpdateClusterStatus => statusOfState[state]

const StoredUpdate = z.object({
  pk: z.string(),
  id: z.string(),
  version: z.string(),
  sha256: z.string(),
  signature: z.string(),
  target: jsonString(z.custom<Target>()),
  canary: z.number(),
  maxConcurrent: z.number(),
  status: z.enum(relayUpdateStatuses),
  statusReason: z.string().optional(),
  states: z.unknown(),
  /** The reasons that relays reported, by position of the cluster. */
  reasons: jsonString(z.record(z.string(), z.string())),
  /** The position from which pending clusters are examined next. */
  cursor: z.number().default(0),
  revision: z.number(),
  createdAtMs: z.number(),
  finishedAtMs: z.number().optional(),
  duesk: z.string().optional(),
  ...submitterFields,
})

export function parseRelayUpdate(item: Item) {
  const { pk, ...record } = StoredUpdate.parse(item)
  const states = decompress(record.states).split('').filter(isState)
  return { ...record, states, organisationId: keys.organisationOf(pk) }
}
export type RelayUpdateRecord = ReturnType<typeof parseRelayUpdate>

export type Progress = Pick<RelayUpdateRecord, 'states' | 'reasons'>

/** Returns the attributes of the item that change with the progress. */
export const progressAttributes = ({ states, reasons }: Progress): Item => ({
  states: compress(states.join('')),
  reasons: JSON.stringify(reasons),
})

const maxReasons = 100

export function addReason({ reasons }: Progress, position: number, reason: string): void {
  if (reason !== '' && Object.keys(reasons).length < maxReasons) reasons[position] = reason
}

/** `item` is the item of the cluster, which contains the reason why a relay with an offer waits. */
export function reasonOf(
  { id, version, states, reasons }: RelayUpdateRecord,
  position: number,
  item: Item | undefined,
): string | undefined {
  const state = states[position]
  const cluster = state === 'O' && item ? parseCluster(item) : undefined
  if (cluster?.relayUpdateId === id) return cluster.relayUpdateProblem || undefined
  if (state === 'A') return `Its relay had version ${version} or a later one.`
  if (state === 'D') return 'The cluster was removed.'
  return reasons[position]
}

export function countsOf({ states }: Progress) {
  const counts = { pending: 0, offered: 0, completed: 0, rolledBack: 0, skipped: 0 }
  const names = {
    Pending: 'pending',
    Offered: 'offered',
    Completed: 'completed',
    RolledBack: 'rolledBack',
    Skipped: 'skipped',
  } as const satisfies Record<RelayUpdateClusterStatus, keyof typeof counts>
  for (const state of states) counts[names[statusOf(state)]]++
  return counts
}

export const positionsOf = ({ states }: Progress, wantedState: State): number[] =>
  states.flatMap((state, position) => (state === wantedState ? [position] : []))

export const relayUpdateView = (record: RelayUpdateRecord): RelayUpdate => ({
  id: record.id,
  version: record.version,
  status: record.status,
  ...(record.statusReason !== undefined && { statusReason: record.statusReason }),
  target: record.target,
  canary: record.canary,
  maxConcurrent: record.maxConcurrent,
  resolvedCount: record.states.length,
  counts: countsOf(record),
  createdAt: iso(record.createdAtMs),
  createdBy: submitterView(record),
  ...optionalTimestamp('finishedAt', record.finishedAtMs),
})

/** This number of ids has at most 200 KB when compressed, which is below the limit of an item. */
const idsPerItem = 10_000

export const memberWrites = (organisationId: string, id: string, clusterIds: readonly string[]): WriteItem[] =>
  chunk(clusterIds, idsPerItem).map((ids, index) =>
    create(keys.relayUpdateMembers(organisationId, id, index), { ids: compress(ids.join(' ')) }),
  )

const retentionSeconds = 400 * 86_400

/** Returns the time in seconds at which the store removes an update that ends now. */
export const expirySeconds = (): number => nowSeconds() + retentionSeconds

/** The ids expire later than the update, because the store removes items in any order and some days late. */
export const memberExpiryWrites = ({ organisationId, id, states }: RelayUpdateRecord): WriteItem[] =>
  Array.from({ length: Math.ceil(states.length / idsPerItem) }, (_, index) =>
    patch(keys.relayUpdateMembers(organisationId, id, index), { set: { ttl: expirySeconds() + 30 * 86_400 } }),
  )

/** Returns the ids of the clusters, by position. */
export async function membersOf({ organisationId, id }: RelayUpdateRecord): Promise<string[]> {
  const items = await queryAll({ pk: keys.relayUpdateMembers(organisationId, id, 0).pk })
  return items.flatMap(({ ids }) => decompress(ids).split(' '))
}
