import { type EventOf, type ModuleEvent } from '@platform/contract/event'
import { type JobStatus } from '@platform/contract/job'
import * as z from 'zod'
import { type Actor } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, type Item, type WriteItem } from '../db/table.ts'
import { derivedId, newId, timeOf } from '../id.ts'
import { currentTraceId } from '../log.ts'
import { outboxRetryMs } from '../aws/queues.ts'

/**
 * The outbox (D37). A change of state writes one record in its own transaction: who did what, for the audit trail, and
 * the events that it means. The books (`books/books.ts`) take records from there.
 */

const actorKinds = ['user', 'relay', 'system'] as const

// Loaded by every function that changes something: schemas of whole jobs would make each first answer later.
const Status = z.custom<JobStatus>((value) => typeof value === 'string')

/** A job that moves from one status to another; undefined: it was not there before, or is not any more. */
const JobTransition = z.object({
  clusterId: z.string().optional(),
  batchId: z.string().optional(),
  from: Status.optional(),
  to: Status.optional(),
  /** Its batch holds it back meanwhile. */
  isHeld: z.literal(true).optional(),
})
export type JobTransition = z.infer<typeof JobTransition>

const StoredEvent = z.object({
  id: z.string(),
  /** Of `EventName`, of `ModuleEvent`, or one that a newer release of the platform knows. */
  name: z.string(),
  subject: z.string(),
  data: z.record(z.string(), z.unknown()),
})

const Audit = z.object({
  action: z.string(),
  resource: z.string(),
  detail: z.string(),
  isExtra: z.literal(true).optional(),
})

/** Who made a change, as records tell. */
export const StoredActor = z.object({ kind: z.enum(actorKinds), id: z.string(), tokenId: z.string().optional() })

const RecordBody = z.object({
  actor: StoredActor,
  address: z.string().optional(),
  traceId: z.string(),
  atMs: z.number(),
  audit: Audit.optional(),
  events: z.array(StoredEvent),
  moves: z.array(JobTransition),
})

/** What happened, as the outbox holds it. `atMs` is when; `events` carry the names and data of D37. */
export type OutboxRecord = z.infer<typeof RecordBody> & { id: string; organisationId: string }
export type StoredOutboxEvent = z.infer<typeof StoredEvent>

/** What a change tells about itself. */
export interface Effects {
  /** For the audit trail: `<noun>.<verb>`, the id it was done to, and a line for people. Extra: a caller asked for it. */
  audit?: { action: string; resource: string; detail?: string; isExtra?: true }
  events?: readonly (EventOf | ModuleEvent)[]
  /** Jobs that change their status, for totals. */
  moves?: readonly JobTransition[]
  /** The record's id, where what is told derives it; those of its events derive from it. It is refused twice only until the books have taken the record. */
  id?: string
}

const identityOf = (actor: Actor) => {
  if (actor.kind === 'system') return { kind: actor.kind, id: 'system' }
  if (actor.kind === 'relay') return { kind: actor.kind, id: actor.relayId }
  return { kind: actor.kind, id: actor.userId, ...(actor.tokenId !== undefined && { tokenId: actor.tokenId }) }
}

/** The step that writes a record. */
export function outboxWrite(actor: Actor, { audit, events = [], moves = [], id = newId('evt') }: Effects): WriteItem {
  const eventId = (index: number) => (index === 0 ? id : derivedId('evt', timeOf(id), id, String(index)))
  const body: z.infer<typeof RecordBody> = {
    actor: identityOf(actor),
    ...('address' in actor && actor.address !== undefined && { address: actor.address }),
    traceId: currentTraceId(),
    atMs: now(),
    ...(audit && { audit: { detail: '', ...audit } }),
    events: events.map((event, index) => ({ ...event, id: eventId(index) })),
    moves: [...moves],
  }
  const { organisationId } = actor
  return create(keys.outbox(organisationId, id), {
    id,
    record: JSON.stringify(body),
    ...keys.due(id, now() + outboxRetryMs),
  })
}

/** A record of its stored item. */
export const parseRecord = (item: Item): OutboxRecord => ({
  ...RecordBody.parse(JSON.parse(String(item['record']))),
  id: String(item['sk']),
  organisationId: keys.organisationOf(String(item['pk'])),
})

/** A job that becomes Queued, or changes its status, as totals count it. */
export const transitionOf = (
  { clusterId, batchId, isHeld }: Pick<JobTransition, 'clusterId' | 'batchId' | 'isHeld'>,
  from: JobStatus | undefined,
  to: JobStatus | undefined,
): JobTransition => ({ clusterId, batchId, from, to, ...(isHeld && { isHeld }) })
