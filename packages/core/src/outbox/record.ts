import type { EventOf, ModuleEvent } from '@platform/contract/event'
import type { JobStatus } from '@platform/contract/job'
import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { type Item, query } from '../db/table.ts'
import { derivedId, timeMsOf } from '../id.ts'
import { compress, decompress } from '../lib/compression.ts'

/**
 * A change writes an outbox record in its transaction, with its audit entry and events. Projections process the record
 * later (`run-projections.ts`).
 */

const actorKinds = ['user', 'relay', 'system'] as const

// Not the full job schema, which would slow down the cold start of every function.
const Status = z.custom<JobStatus>((value) => typeof value === 'string')

/** `from` is undefined for a new job, `to` for a removed one. */
const JobTransition = z.object({
  /** Set for operations, which have no cluster. */
  isOperation: z.literal(true).optional(),
  batchId: z.string().optional(),
  from: Status.optional(),
  to: Status.optional(),
  /** Set if the concurrency limit of its batch delays the job. */
  isThrottled: z.literal(true).optional(),
  /** Set if a job is removed while its cluster exists. */
  isExpired: z.literal(true).optional(),
})
export type JobTransition = z.infer<typeof JobTransition>

export const StoredActor = z.object({ kind: z.enum(actorKinds), id: z.string(), tokenId: z.string().optional() })

/** Contains no id: `parseRecord` derives it, because random ids compress badly. */
const StoredEvent = z.object({
  /** An `EventName`, a `ModuleEvent`, or an event of a newer release. */
  name: z.string(),
  subject: z.string(),
  data: z.record(z.string(), z.unknown()),
  /** Set if the event occurred before the change that records it. */
  atMs: z.number().optional(),
  /** Set if the actor of the event is not the actor of the record. */
  actor: StoredActor.optional(),
})

const Audit = z.object({
  action: z.string(),
  resource: z.string(),
  detail: z.string(),
  isExtra: z.literal(true).optional(),
})

/** Status changes of many clusters in one sweep, which share one notification for each status. */
export const SweepSummary = z.object({
  id: z.string(),
  atMs: z.number(),
  statuses: z.record(z.string(), z.object({ count: z.number(), names: z.array(z.string()) })),
})
export type SweepSummary = z.infer<typeof SweepSummary>

export const RecordBody = z.object({
  actor: StoredActor,
  address: z.string().optional(),
  traceId: z.string(),
  atMs: z.number(),
  audit: Audit.optional(),
  events: z.array(StoredEvent),
  /** Different transitions, each with the number of jobs that have it. */
  transitions: z.array(JobTransition.extend({ count: z.number() })),
  sweep: SweepSummary.optional(),
})

/** `atMs` is the time at which the record was stored; an event may have an earlier time. */
export type OutboxRecord = Omit<z.infer<typeof RecordBody>, 'events' | 'transitions'> & {
  id: string
  organisationId: string
  events: StoredOutboxEvent[]
  /** One for each job. */
  transitions: JobTransition[]
}
export type StoredOutboxEvent = z.infer<typeof StoredEvent> & { id: string }

export interface Effects {
  /** `action` is `<noun>.<verb>`, `resource` usually an id. `isExtra` marks audit entries that callers append. */
  audit?: { action: string; resource: string; detail?: string; isExtra?: true }
  events?: readonly ((EventOf | ModuleEvent) & Pick<StoredOutboxEvent, 'atMs' | 'actor'>)[]
  transitions?: readonly JobTransition[]
  sweep?: SweepSummary
  /** Event ids derive from this id. Duplicates are detected only until the record is projected. */
  id?: string
}

/** A longer text is compressed, so that most records are below 1 KB, and writes of them cost less. */
const maxTextLength = 800

export function storedBody(body: z.infer<typeof RecordBody>): string | Uint8Array {
  const text = JSON.stringify(body)
  return text.length > maxTextLength ? compress(text) : text
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : decompress(value))

export function parseRecord(item: Item): OutboxRecord {
  const id = String(item['sk'])
  const { events, transitions, ...body } = RecordBody.parse(JSON.parse(textOf(item['record'])))
  return {
    ...body,
    id,
    organisationId: keys.organisationOf(String(item['pk'])),
    events: events.map((event, index) => ({ ...event, id: eventId(id, index) })),
    transitions: transitions.flatMap(({ count, ...transition }) => Array.from({ length: count }, () => transition)),
  }
}

export const transitionsWithCounts = (
  transitions: readonly JobTransition[],
): z.infer<typeof RecordBody>['transitions'] =>
  [...Map.groupBy(transitions, (each) => JSON.stringify(each)).values()].flatMap((group) =>
    group.slice(0, 1).map((transition) => ({ ...transition, count: group.length })),
  )

const eventId = (recordId: string, index: number): string =>
  index === 0 ? recordId : derivedId('evt', timeMsOf(recordId), recordId, String(index))

export async function readOldestRecords(organisationId: string, limit: number): Promise<Item[]> {
  const pages = await Promise.all(keys.outboxPartitions(organisationId).map((pk) => query({ pk, limit })))
  const items = pages.flatMap((page) => page.items)
  return items.toSorted((one, other) => (String(one['sk']) < String(other['sk']) ? -1 : 1)).slice(0, limit)
}

export const transitionOf = (
  { clusterId, batchId, isThrottled }: { clusterId?: string } & Pick<JobTransition, 'batchId' | 'isThrottled'>,
  from: JobStatus | undefined,
  to: JobStatus | undefined,
): JobTransition => ({
  ...(clusterId === undefined && { isOperation: true }),
  batchId,
  from,
  to,
  ...(isThrottled && { isThrottled }),
})
