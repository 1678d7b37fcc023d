import * as z from 'zod'
import { type PublishedEvent, publishedHeader, publishedLimits } from '@platform/modules/protocol'

const Published = z.array(
  z.object({
    type: z.string().max(200),
    subject: z.string().max(200).optional(),
    data: z.record(z.string(), z.unknown()),
  }),
)

/**
 * The events that an answer of a module carries: of its own types only, and no more than an SDK would send. Whatever else
 * stands in that header is ignored.
 */
export function publishedIn(moduleId: string, headers: Readonly<Record<string, string>>): PublishedEvent[] {
  const value = headers[publishedHeader]
  if (value === undefined || value.length > publishedLimits.headerBytes) return []
  const events = parsed(value).filter(({ type }) => type.startsWith(`module.${moduleId}.`))
  return events.slice(0, publishedLimits.events).map(withoutAbsent)
}

const withoutAbsent = ({ type, subject, data }: z.infer<typeof Published>[number]): PublishedEvent =>
  subject === undefined ? { type, data } : { type, subject, data }

function parsed(value: string): z.infer<typeof Published> {
  try {
    return Published.safeParse(JSON.parse(Buffer.from(value, 'base64url').toString())).data ?? []
  } catch {
    return []
  }
}
