import { isModuleEventName, type ModuleEvent } from '@platform/contract/event'
import { system } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { derivedId } from '@platform/core/id'
import { log } from '@platform/core/log'
import { type ModuleRecord } from '@platform/core/modules/record'
import { type PublishedEvent, publishedLimits } from '@platform/modules/protocol'

/** What modules publish becomes events like the platform's own, under names of their own (D37). */

const maxTextLength = 200
/** Of free-form JSON (D35). */
const maxDepth = 16

/** The events of an answer that may be told: of the module's own type, no more and no larger than modules agree to. */
export function ownEvents(moduleId: string, published: readonly PublishedEvent[]): ModuleEvent[] {
  const events = published.slice(0, publishedLimits.events).flatMap((event) => ownEvent(moduleId, event))
  const refused = published.length - events.length
  if (refused > 0) log('warn', 'A module has published what it may not', { moduleId, refused })
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

/** What brought the events: told of twice, they are the same events. */
export interface PublishContext {
  atMs: number
  name: string
}

/** Tells what a module has published. One call and one message; none where there is nothing to tell. */
export async function recordPublished(
  { id: moduleId, organisationId }: Pick<ModuleRecord, 'id' | 'organisationId'>,
  published: readonly PublishedEvent[],
  { atMs, name }: PublishContext,
): Promise<void> {
  const events = ownEvents(moduleId, published)
  if (events.length === 0) return
  const id = derivedId('evt', atMs, moduleId, name)
  await commit(system(organisationId), { steps: [], events, id })
}
