import type { Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, batchPut } from '../db/table.ts'
import { derivedId, isId } from '../id.ts'
import type { OutboxRecord, StoredOutboxEvent } from '../outbox/record.ts'
import { chunk } from '../lib/async.ts'
import { retentionSeconds, type TimelineRecord } from './timeline.ts'

export const timelineProjection: Projection = {
  name: 'timeline',
  beforeCommit: (_, records) =>
    batchPut(itemsOf(records.flatMap((record) => [...eventEntries(record), ...auditEntries(record)]))),
}

/** Removing a cluster deletes its timeline, so the removal itself has no entry. */
const removalEvent = 'cluster.deleted'
const removalAction = 'cluster.delete'

/** Keeps most items below 1 KB. */
const maxEntriesPerItem = 4

const isCluster = (value: unknown): value is string => typeof value === 'string' && isId('clus', value)

/** Jobs have no stored entries (see jobs/cluster-timeline.ts). */
const eventEntries = (record: OutboxRecord): Entry[] =>
  record.events.flatMap((event, index) => {
    const { clusterId } = event.data
    if (!isCluster(clusterId) || event.name === removalEvent || event.name.startsWith('job.')) return []
    // Each event is a millisecond later than the one before, so that the timeline keeps their order.
    const eventRecord = { ...record, atMs: record.atMs + index }
    return [timelineEntry(eventRecord, clusterId, event.id, contentOf(event))]
  })

function auditEntries(record: OutboxRecord): Entry[] {
  const { action = removalAction, resource, detail = '', isExtra } = record.audit ?? {}
  if (!isCluster(resource) || action === removalAction) return []
  const optionalFields = { ...(detail !== '' && { detail }), ...(isExtra && { extra: isExtra }) }
  return [timelineEntry(record, resource, `${record.id} audit`, { kind: 'audit', title: action, ...optionalFields })]
}

type Content = Pick<TimelineRecord, 'kind' | 'title' | 'detail' | 'resource' | 'extra'>

type Entry = ReturnType<typeof timelineEntry>

/** The id derives from the event, so that a repeated write stores the same entry. */
const timelineEntry = (
  { organisationId, atMs, actor }: OutboxRecord,
  clusterId: string,
  sourceId: string,
  content: Content,
) => ({
  key: keys.timeline(organisationId, clusterId, derivedId('evt', atMs, sourceId)),
  fields: { ...content, actor },
})

/**
 * The entries of a cluster that are projected together share an item. After an interruption, the same entries may be
 * projected together with others, so readers ignore repeated ids.
 */
const itemsOf = (entries: readonly Entry[]): Item[] =>
  [...Map.groupBy(entries, ({ key }) => key.pk).values()].flatMap((ofCluster) =>
    chunk(ofCluster, maxEntriesPerItem).map((entriesOfItem) => {
      const [newestEntry, ...others] = entriesOfItem.toSorted((one, other) => (one.key.sk < other.key.sk ? 1 : -1))
      const earlierEntries = others.map(({ key, fields }) => ({ sk: key.sk, ...fields }))
      return {
        ...newestEntry?.key,
        ...newestEntry?.fields,
        ...(earlierEntries.length > 0 && { earlier: JSON.stringify(earlierEntries) }),
        ttl: nowSeconds() + retentionSeconds,
      }
    }),
  )

function contentOf({ name, data }: StoredOutboxEvent): Content {
  const { status, previousStatus, relayId } = data
  if (name === 'cluster.status_changed') {
    return { kind: 'status', title: `Became ${String(status)}`, detail: `It was ${String(previousStatus)} before.` }
  }
  return { kind: 'event', title: eventTitles[name] ?? name, ...(isText(relayId) && { resource: relayId }) }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const eventTitles: Partial<Record<StoredOutboxEvent['name'], string>> = {
  'cluster.registered': 'Cluster registered',
  'cluster.enrolled': 'Relay enrolled',
  'cluster.updated': 'Cluster changed',
  'relay.replaced': 'Relay replaced',
  'relay.duplicate_detected': 'Two relays use the same key',
  'enrollment.reuse_detected': 'Reuse of an enrollment token rejected',
}
