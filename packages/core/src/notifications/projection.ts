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

const concurrency = 4

/** The id derives from the event, so that a repeated projection has no effect. */
interface Occurrence extends NotificationTemplate {
  id: string
  eventId: string
  atMs: number
}

/** Each recipient's feed gets a small item; the content is stored once. */
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
    // Contents must exist before the feed items that refer to them.
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

/** Checks notifications of one type and cluster sequentially, because each may start a cooldown. */
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
  // Expires a day after its feed items.
  ttl: nowSeconds() + retentionSeconds + 86_400,
})

interface FeedEntry extends Pick<NotificationTemplate, 'type' | 'severity'> {
  key: keys.Key
}

/** Existing items keep their read state. */
async function createEntries(entries: readonly FeedEntry[]): Promise<void> {
  const ttl = nowSeconds() + retentionSeconds
  const createChunk = (entriesOfChunk: readonly FeedEntry[]) =>
    transact(entriesOfChunk.map(({ key, ...attributes }) => upsert(key, { set: { ttl, ...attributes } })))
  await forEachLimit(concurrency, chunk(entries, 100), createChunk)
}
