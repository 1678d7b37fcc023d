import { recipientsOf } from './recipients.ts'
import { type Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import { claimCooldown } from './cooldown.ts'
import * as keys from '../db/keys.ts'
import { batchPut, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { derivedId } from '../id.ts'
import { retentionSeconds } from './notification.ts'
import { forEachLimit, chunk } from '../lib/async.ts'
import { type OutboxRecord } from '../outbox/record.ts'
import { type NotificationTemplate, notificationFor } from './templates.ts'

/** Concurrent transactions, of 100 entries each. */
const concurrency = 4

/** A notification of an event. Its id is derived from the event, so that repetition is idempotent. */
interface Occurrence extends NotificationTemplate {
  id: string
  eventId: string
  atMs: number
}

/**
 * Creates notifications: a small entry in each recipient's feed, and the shared content once. No call without
 * notifications; otherwise up to two for users and contents, and one per 100 entries, four concurrently.
 */
export const notificationProjection: Projection = {
  name: 'notifications',
  beforeCommit: async (organisationId, records) => {
    const occurrences = await afterCooldowns(organisationId, records.flatMap(occurrencesOf))
    const recipients = await recipientsOf(
      organisationId,
      occurrences.map(({ audience }) => audience),
    )
    const entries = occurrences.flatMap(({ id, audience, type, severity }) =>
      [...recipients(audience)].map((userId) => ({ key: keys.feed(organisationId, userId, id), type, severity })),
    )
    // Contents before the entries that refer to them.
    await batchPut(occurrences.map((occurrence) => contentItem(organisationId, occurrence)))
    await createEntries(entries)
  },
}

const occurrencesOf = ({ atMs, events }: OutboxRecord): Occurrence[] =>
  events.flatMap((event) => {
    const template = notificationFor(event)
    if (template === undefined) return []
    const id = derivedId('notif', atMs, event.id, template.type)
    return [{ ...template, id, eventId: event.id, atMs }]
  })

/** Drops notifications during a cooldown. Notifications of one kind are checked sequentially. */
async function afterCooldowns(organisationId: string, occurrences: readonly Occurrence[]): Promise<Occurrence[]> {
  const kinds = Map.groupBy(occurrences, ({ clusterId, type, id }) => (clusterId === undefined ? id : clusterId + type))
  const allowedByKind = [...kinds.values()].map(async (kind) => {
    const allowed: Occurrence[] = []
    for (const occurrence of kind) {
      const { clusterId } = occurrence
      if (clusterId === undefined || (await claimCooldown({ ...occurrence, organisationId, clusterId })))
        allowed.push(occurrence)
    }
    return allowed
  })
  return (await Promise.all(allowedByKind)).flat()
}

const contentItem = (organisationId: string, { id, type, title, body, severity, resource }: Occurrence) => ({
  ...keys.notification(organisationId, id),
  type,
  title,
  body,
  severity,
  resource,
  // Expires after its entries.
  ttl: nowSeconds() + retentionSeconds + 86_400,
})

/** An entry of a user's feed, with its filter fields. */
interface FeedEntry extends Pick<NotificationTemplate, 'type' | 'severity'> {
  key: keys.Key
}

/** Creates entries. Existing entries keep their read state. */
async function createEntries(entries: readonly FeedEntry[]): Promise<void> {
  const ttl = nowSeconds() + retentionSeconds
  const createChunk = (entriesOfChunk: readonly FeedEntry[]) =>
    transact(entriesOfChunk.map(({ key, ...attributes }) => upsert(key, { set: { ttl, ...attributes } })))
  await forEachLimit(concurrency, chunk(entries, 100), createChunk)
}
