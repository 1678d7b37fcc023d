import { type CloudEvent, isModuleEventName } from '@platform/contract/event'
import { iso } from '../clock.ts'
import type { OutboxRecord, StoredOutboxEvent } from '../outbox/record.ts'

type EventContext = Pick<OutboxRecord, 'organisationId' | 'atMs' | 'traceId'>

export const cloudEvent = (
  { id, name, subject, data, atMs: occurredAtMs }: Omit<StoredOutboxEvent, 'name'> & { name: string },
  { organisationId, atMs, traceId }: EventContext,
): CloudEvent => ({
  specversion: '1.0',
  id,
  source: `/organisations/${organisationId}`,
  type: isModuleEventName(name) ? name : `platform.${name}`,
  subject,
  time: iso(occurredAtMs ?? atMs),
  datacontenttype: 'application/json',
  ...(traceId !== '' && { traceid: traceId }),
  data,
})
