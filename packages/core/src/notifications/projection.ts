import { recipientsOf } from './recipients.ts'
import { type Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import { claimCooldown } from './cooldown.ts'
import * as keys from '../db/keys.ts'
import { batchPut, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { derivedId } from '../id.ts'
import { keepSeconds } from './notification.ts'
import { forEachLimit, chunk } from '../lib/async.ts'
import { type OutboxRecord } from '../outbox/record.ts'
import { type NotificationTemplate, notificationFor } from './templates.ts'

/** Concurrent transactions of 100 entries each. */
const partsAtOnce = 4

/** A notification of an event. Its id derives from the event, so that repetition is idempotent. */
interface Occurrence extends NotificationTemplate {
  id: string
  eventId: string
  atMs: number
}

/**
 * Notifications: one small entry in each user's feed, and the shared content once. No call for records without
 * notifications; else up to two for users and contents, and one per 100 entries, four concurrently.
 */
export const notificationProjection: Projection = {
  name: 'notifications',
  beforeCommit: async (organisationId, records) => {
    const occurrences = await withoutRepeats(organisationId, records.flatMap(occurrencesOf))
    const recipients = await recipientsOf(
      organisationId,
      occurrences.map(({ audience }) => audience),
    )
    const entries = occurrences.flatMap(({ id, audience, type, severity }) =>
      [...recipients(audience)].map((userId) => ({ key: keys.feed(organisationId, userId, id), type, severity })),
    )
    // Contents first, so that every entry has one.
    await batchPut(occurrences.map((occurrence) => detailItem(organisationId, occurrence)))
    await enter(entries)
  },
}

const occurrencesOf = ({ atMs, events }: OutboxRecord): Occurrence[] =>
  events.flatMap((event) => {
    const telling = notificationFor(event)
    if (telling === undefined) return []
    const id = derivedId('notif', atMs, event.id, telling.type)
    return [{ ...telling, id, eventId: event.id, atMs }]
  })

/** Drops notifications during a cooldown. Those of one kind are checked sequentially. */
async function withoutRepeats(organisationId: string, occurrences: readonly Occurrence[]): Promise<Occurrence[]> {
  const kinds = Map.groupBy(occurrences, ({ clusterId, type, id }) => (clusterId === undefined ? id : clusterId + type))
  const judged = [...kinds.values()].map(async (kind) => {
    const passed: Occurrence[] = []
    for (const occurrence of kind) {
      const { clusterId } = occurrence
      if (clusterId === undefined || (await claimCooldown({ ...occurrence, organisationId, clusterId })))
        passed.push(occurrence)
    }
    return passed
  })
  return (await Promise.all(judged)).flat()
}

const detailItem = (organisationId: string, { id, type, title, body, severity, resource }: Occurrence) => ({
  ...keys.notification(organisationId, id),
  type,
  title,
  body,
  severity,
  resource,
  // Expires after its entries.
  ttl: nowSeconds() + keepSeconds + 86_400,
})

/** An entry of a user's feed, with its filter fields. */
interface FeedEntry extends Pick<NotificationTemplate, 'type' | 'severity'> {
  key: keys.Key
}

/** Creates entries. Existing ones keep their read state. */
async function enter(entries: readonly FeedEntry[]): Promise<void> {
  const ttl = nowSeconds() + keepSeconds
  const enterPart = (part: readonly FeedEntry[]) =>
    transact(part.map(({ key, ...filed }) => upsert(key, { set: { ttl, ...filed } })))
  await forEachLimit(partsAtOnce, chunk(entries, 100), enterPart)
}
