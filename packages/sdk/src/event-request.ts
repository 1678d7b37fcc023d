import type { ModuleEvent } from './events.ts'
import { HookError } from './hook-error.ts'

/**
 * Parses an `EventsRequest` and converts its CloudEvents to module events. Throws `HookError` (`bad_request`) if the
 * body is malformed.
 */
export function eventsOf(body: string, organisationId: string): ModuleEvent[] {
  const { events } = membersOf(parseJson(body))
  if (!Array.isArray(events)) throw badRequestError()
  return events.map((event: unknown) => eventOf(membersOf(event), organisationId))
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw badRequestError()
  }
}

function membersOf(value: unknown): Partial<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw badRequestError()
  return { ...value }
}

function eventOf(cloudEvent: Partial<Record<string, unknown>>, organisationId: string): ModuleEvent {
  const { id, type, time, subject = '', source = '', data } = cloudEvent
  const [, sourceOrganisation] = /^\/organisations\/([^/]+)/.exec(requireString(source)) ?? []
  return {
    id: requireString(id),
    type: requireString(type),
    time: requireString(time),
    subject: requireString(subject),
    organisationId: sourceOrganisation ?? organisationId,
    data: membersOf(data),
  }
}

function requireString(value: unknown): string {
  if (typeof value !== 'string') throw badRequestError()
  return value
}

const badRequestError = (): HookError => new HookError('bad_request', 'The body contains no valid CloudEvents.')
