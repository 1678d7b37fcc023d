import { type Projection } from '../outbox/run-projections.ts'
import { nowSeconds } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, batchPut } from '../db/table.ts'
import { derivedId, isId } from '../id.ts'
import { type OutboxRecord, type StoredOutboxEvent } from '../outbox/record.ts'
import { keepSeconds, type TimelineRecord } from './timeline.ts'

/** Timelines of clusters: a record for each event and audit entry about a cluster. One call per 25 records. */
export const timelineProjection: Projection = {
  name: 'timeline',
  beforeCommit: (_, records) => batchPut(records.flatMap((record) => [...eventRows(record), ...auditRows(record)])),
}

/** The removal of a cluster is not recorded: its timeline is purged with it. */
const lastEvent = 'cluster.deleted'
const lastAction = 'cluster.delete'

const isCluster = (value: unknown): value is string => typeof value === 'string' && isId('clus', value)

const eventRows = (record: OutboxRecord): Item[] =>
  record.events.flatMap((event) => {
    const { clusterId } = event.data
    return isCluster(clusterId) && event.name !== lastEvent ? [row(record, clusterId, event.id, contentOf(event))] : []
  })

function auditRows(record: OutboxRecord): Item[] {
  const { action = lastAction, resource, detail = '', isExtra } = record.audit ?? {}
  if (!isCluster(resource) || action === lastAction) return []
  const more = { ...(detail !== '' && { detail }), ...(isExtra && { extra: isExtra }) }
  return [row(record, resource, `${record.id} audit`, { kind: 'audit', title: action, ...more })]
}

type Content = Pick<TimelineRecord, 'kind' | 'title' | 'detail' | 'resource' | 'extra'>

/** The id derives from the event, so that a repeated write is idempotent. */
const row = (
  { organisationId, atMs, actor }: OutboxRecord,
  clusterId: string,
  source: string,
  content: Content,
): Item => ({
  ...keys.timeline(organisationId, clusterId, derivedId('evt', atMs, source)),
  ...content,
  actor,
  ttl: nowSeconds() + keepSeconds,
})

function contentOf({ name, data, subject }: StoredOutboxEvent): Content {
  const { status, previousStatus, statusReason, relayId } = data
  if (name === 'cluster.status_changed') {
    return { kind: 'status', title: `Became ${String(status)}`, detail: `It was ${String(previousStatus)} before.` }
  }
  const [area = '', verb = ''] = name.split('.')
  if (area === 'job') {
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
  'enrollment.reuse_detected': 'A used enrollment token was refused',
}
