import { type PublishedEvent, publishedHeader, publishedLimits } from '@platform/modules/protocol'
import { isModuleEventName, type ModuleEvent } from '@platform/contract/event'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { derivedId } from '@platform/core/id'
import { log } from '@platform/core/log'
import type { ModuleRecord } from '@platform/core/modules/record'
import * as z from 'zod'

const Published = z.array(
  z.object({
    type: z.string().max(200),
    subject: z.string().max(200).optional(),
    data: z.record(z.string(), z.unknown()),
  }),
)

/**
 * Returns the published events in the headers of a response: only events of the module's own types, and no more than an
 * SDK would send. Ignores invalid headers.
 */
export function publishedIn(moduleId: string, headers: Readonly<Record<string, string>>): PublishedEvent[] {
  const value = headers[publishedHeader]
  if (value === undefined || value.length > publishedLimits.headerBytes) return []
  const events = parse(value).filter(({ type }) => type.startsWith(`module.${moduleId}.`))
  return events.slice(0, publishedLimits.events).map(toEvent)
}

const toEvent = ({ type, subject, data }: z.infer<typeof Published>[number]): PublishedEvent =>
  subject === undefined ? { type, data } : { type, subject, data }

function parse(value: string): z.infer<typeof Published> {
  try {
    return Published.safeParse(JSON.parse(Buffer.from(value, 'base64url').toString())).data ?? []
  } catch {
    return []
  }
}

const maxTextLength = 200
const maxDepth = 16

/** Returns the allowed events of a module: those of its own types, within the limits for number and size. */
export function ownEvents(moduleId: string, publishedEvents: readonly PublishedEvent[]): ModuleEvent[] {
  const events = publishedEvents.slice(0, publishedLimits.events).flatMap((event) => ownEvent(moduleId, event))
  const rejectedCount = publishedEvents.length - events.length
  if (rejectedCount > 0) log('warn', 'Module published a disallowed event', { moduleId, rejected: rejectedCount })
  return events
}

function ownEvent(moduleId: string, { type: name, subject = moduleId, data }: PublishedEvent): ModuleEvent[] {
  const isOwn = isModuleEventName(name) && name.startsWith(`module.${moduleId}.`) && name.length <= maxTextLength
  const isSmall = subject.length <= maxTextLength && isShallow(data) && bytesOf(data) <= publishedLimits.dataBytes
  return isOwn && isSmall ? [{ name, subject, data }] : []
}

const bytesOf = (data: object): number => Buffer.byteLength(JSON.stringify(data))

const isShallow = (value: unknown, levels = maxDepth): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1)))

/** Identifies the source of the events, so that recording them twice yields the same events. */
export interface PublishContext {
  atMs: number
  name: string
}

export async function recordPublished(
  { id: moduleId, organisationId }: Pick<ModuleRecord, 'id' | 'organisationId'>,
  publishedEvents: readonly PublishedEvent[],
  { atMs, name }: PublishContext,
): Promise<void> {
  const events = ownEvents(moduleId, publishedEvents)
  if (events.length === 0) return
  const id = derivedId('evt', atMs, moduleId, name)
  await commit(system(organisationId), { writes: [], events, id })
}
