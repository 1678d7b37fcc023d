import { isolate } from '@platform/contract/user-name'
import { recipientsOf } from './recipients.ts'
import type { Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import { claimCooldown } from './cooldown.ts'
import { clusterNameOf } from '../clusters/record.ts'
import * as keys from '../db/keys.ts'
import { batchPut, getMany, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { derivedId } from '../id.ts'
import { retentionSeconds } from './notification.ts'
import { forEachLimit, chunk } from '../lib/async.ts'
import { batchTitle, parseBatch } from '../jobs/batches/record.ts'
import { parseJob, titleOf } from '../jobs/record.ts'
import type { OutboxRecord, StoredOutboxEvent } from '../outbox/record.ts'
import { clustersNotification, isNotifiedStatus, type NotificationTemplate, notificationFor } from './templates.ts'

const maxConcurrency = 4

/** The id is derived from the event, sweep or cooldown, so that a repetition has no effect. */
export interface NewNotification extends NotificationTemplate {
  id: string
}

interface Occurrence extends NewNotification {
  eventId: string
  atMs: number
}

export const notificationProjection: Projection = {
  name: 'notifications',
  beforeCommit: async (organisationId, records) => {
    const occurrences = await withTitles(organisationId, records.flatMap(occurrencesOf))
    await notify(organisationId, await afterCooldowns(organisationId, occurrences))
  },
}

/** Events do not contain titles, because receivers of webhooks are not trusted with parts of scripts. */
async function withTitles(organisationId: string, occurrences: readonly Occurrence[]): Promise<Occurrence[]> {
  const keysOf = ({ titledResource }: Occurrence): keys.Key[] => {
    if (titledResource === undefined) return []
    if ('batchId' in titledResource) return [keys.batch(organisationId, titledResource.batchId)]
    const { jobId, clusterId } = titledResource
    return [
      keys.job(organisationId, jobId),
      ...(clusterId === undefined ? [] : [keys.cluster(organisationId, clusterId)]),
    ]
  }
  const wantedKeys = occurrences.map(keysOf)
  const items = await getMany(wantedKeys.flat())
  return occurrences.map((occurrence, index) => {
    const [subject, cluster] = items.splice(0, wantedKeys[index]?.length ?? 0)
    const { titledResource } = occurrence
    if (titledResource === undefined) return occurrence
    const kind = 'batchId' in titledResource ? 'batch' : 'job'
    const title = subject && (kind === 'batch' ? batchTitle(parseBatch(subject)) : titleOf(parseJob(subject)))
    const name = clusterNameOf(cluster)
    const namedTitle =
      title === undefined ? occurrence.title : occurrence.title.replace(`A ${kind}`, () => quotedTitle(kind, title))
    return { ...occurrence, title: name === undefined ? namedTitle : `${namedTitle} on ${isolate(name)}` }
  })
}

const quotedTitle = (kind: 'job' | 'batch', title: string): string =>
  `${kind === 'job' ? 'Job' : 'Batch'} “${isolate(title)}”`

/** Stores the content once, and a small item in the feed of each recipient. A repeated call has no effect. */
export async function notify(organisationId: string, notifications: readonly NewNotification[]): Promise<void> {
  const unique = [...new Map(notifications.map((notification) => [notification.id, notification])).values()]
  const findRecipients = await recipientsOf(
    organisationId,
    unique.map(({ audience }) => audience),
  )
  const entries = unique.flatMap(({ id, audience, type, severity }) =>
    [...findRecipients(audience)].map((userId) => ({ key: keys.feed(organisationId, userId, id), type, severity })),
  )
  // Contents must exist before the feed items that refer to them.
  await batchPut(unique.map((notification) => contentItem(organisationId, notification)))
  await createEntries(entries)
}

const occurrencesOf = (record: OutboxRecord): Occurrence[] =>
  record.events.flatMap((event, index) => {
    // The ids are derived from times one millisecond apart, so that lists keep the order of the events.
    const notification = summaryOf(record, event) ?? notificationOf(record.atMs + index, event)
    return notification === undefined ? [] : [{ ...notification, eventId: event.id, atMs: record.atMs }]
  })

function notificationOf(atMs: number, event: StoredOutboxEvent): NewNotification | undefined {
  const template = notificationFor(event)
  return template && { ...template, id: derivedId('notif', atMs, event.id, template.type) }
}

/** All changes of a sweep to one status derive the same id. */
function summaryOf({ organisationId, sweep }: OutboxRecord, { name, data }: StoredOutboxEvent) {
  const status = String(data['status'])
  const summary = sweep?.statuses[status]
  if (name !== 'cluster.status_changed' || !isNotifiedStatus(status) || summary === undefined || summary.count < 2)
    return undefined
  const template = clustersNotification(status, { organisationId, ...summary })
  const sortMs = (sweep?.atMs ?? 0) + (status === 'Offline' ? 1 : 0)
  const id = derivedId('notif', sortMs, sweep?.id ?? '', status)
  return { ...template, clusterId: String(data['clusterId']), id }
}

/** Checks notifications of one type and cluster sequentially, because each may start a cooldown. */
async function afterCooldowns(organisationId: string, occurrences: readonly Occurrence[]): Promise<Occurrence[]> {
  const kinds = Map.groupBy(occurrences, ({ clusterId, type, id }) => (clusterId === undefined ? id : clusterId + type))
  const allowedByKind = [...kinds.values()].map(async (kind) => {
    const allowedOccurrences: Occurrence[] = []
    for (const occurrence of kind) {
      const { clusterId } = occurrence
      if (clusterId === undefined || (await claimCooldown({ ...occurrence, organisationId, clusterId })))
        allowedOccurrences.push(occurrence)
    }
    return allowedOccurrences
  })
  return (await Promise.all(allowedByKind)).flat()
}

const contentItem = (
  organisationId: string,
  { id, type, title, body, severity, resource, count }: NewNotification,
) => ({
  ...keys.notification(organisationId, id),
  type,
  title,
  body,
  severity,
  resource,
  ...(count !== undefined && { count }),
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
  await forEachLimit(maxConcurrency, chunk(entries, 100), createChunk)
}
