import type { EndpointDefinition, ResponseDefinition } from '@platform/contract/endpoint'
import { config } from '@platform/core/config'
import type { Answer } from './result.ts'
import type { HttpContext } from './context.ts'
import { checkAgainst } from './validate-response.ts'
import { type Reply, reply } from './response.ts'

/** A handler's answer as a reply: JSON, text, nothing, or "not modified" to a caller that has it already. */
export function respond(context: HttpContext, { responses }: EndpointDefinition, answer: Answer): Reply {
  const { status, headers, cookies } = answer
  const promised = responses[status]
  if (promised === undefined) throw new Error(`The endpoint does not promise the status ${status}.`)
  if (isKnown(headers['etag'], context)) return reply(304, null, headers)
  const text = textOf(promised, answer.body)
  if (text === null) return reply(status, null, headers, cookies)
  return reply(status, text, { 'content-type': promised.contentType ?? 'application/json', ...headers }, cookies)
}

function textOf({ schema, contentType }: ResponseDefinition, body: unknown): string | null {
  if (schema === undefined) return contentType === undefined ? null : String(body)
  if (body === undefined) throw new Error('The endpoint promises a body.')
  const text = JSON.stringify(body)
  if (config.PLAT_CHECK_RESPONSES === '1') checkAgainst(schema, text)
  return text
}

/** Whether the caller holds what the tag names. A gateway on the way may have weakened the tag. */
export function isKnown(etag: string | undefined, { env }: HttpContext): boolean {
  const held = (env.event.headers['if-none-match'] ?? '').split(',')
  return etag !== undefined && held.some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
