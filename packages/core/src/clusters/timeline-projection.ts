import { type Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, batchPut } from '../db/table.ts'
import { derivedId, isId } from '../id.ts'
import { type OutboxRecord, type StoredOutboxEvent } from '../outbox/record.ts'
import { retentionSeconds, type TimelineRecord } from './timeline.ts'

export const timelineProjection: Projection = {
  name: 'timeline',
  beforeCommit: (_, records) => batchPut(records.flatMap((record) => [...eventItems(record), ...auditItems(record)])),
}

/** Removing a cluster deletes its timeline, so the removal itself has no entry. */
const removalEvent = 'cluster.deleted'
const removalAction = 'cluster.delete'

const isCluster = (value: unknown): value is string => typeof value === 'string' && isId('clus', value)

const eventItems = (record: OutboxRecord): Item[] =>
  record.events.flatMap((event, index) => {
    const { clusterId } = event.data
    // Later by a millisecond, so that the timeline keeps the order of the events.
    const ordered = { ...record, atMs: record.atMs + index }
    return isCluster(clusterId) && event.name !== removalEvent
      ? [timelineItem(ordered, clusterId, event.id, contentOf(event))]
      : []
  })

function auditItems(record: OutboxRecord): Item[] {
  const { action = removalAction, resource, detail = '', isExtra } = record.audit ?? {}
  if (!isCluster(resource) || action === removalAction) return []
  const optionalFields = { ...(detail !== '' && { detail }), ...(isExtra && { extra: isExtra }) }
  return [timelineItem(record, resource, `${record.id} audit`, { kind: 'audit', title: action, ...optionalFields })]
}

type Content = Pick<TimelineRecord, 'kind' | 'title' | 'detail' | 'resource' | 'extra'>

/** The id derives from the event, so that a repeated write stores the same item. */
const timelineItem = (
  { organisationId, atMs, actor }: OutboxRecord,
  clusterId: string,
  sourceId: string,
  content: Content,
): Item => ({
  ...keys.timeline(organisationId, clusterId, derivedId('evt', atMs, sourceId)),
  ...content,
  actor,
  ttl: nowSeconds() + retentionSeconds,
})

function contentOf({ name, data, subject }: StoredOutboxEvent): Content {
  const { status, previousStatus, statusReason, relayId } = data
  if (name === 'cluster.status_changed') {
    return { kind: 'status', title: `Became ${String(status)}`, detail: `It was ${String(previousStatus)} before.` }
  }
  const [noun = '', verb = ''] = name.split('.')
  if (noun === 'job') {
    return {
      kind: 'job',
      title: `Job ${verb}`,
      resource: subject,
      ...(isText(statusReason) && { detail: statusReason }),
    }
  }
  return { kind: 'event', title: titles[name] ?? name, ...(isText(relayId) && { resource: relayId }) }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const titles: Partial<Record<StoredOutboxEvent['name'], string>> = {
  'cluster.registered': 'Cluster registered',
  'cluster.enrolled': 'Relay enrolled',
  'cluster.updated': 'Cluster changed',
  'relay.replaced': 'Relay replaced',
  'relay.duplicate_detected': 'Two relays use the same key',
  'enrollment.reuse_detected': 'Reuse of an enrollment token rejected',
}
