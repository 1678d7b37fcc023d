import type { EndpointDefinition, ResponseDefinition } from '@platform/contract/endpoint'
import { config } from '@platform/core/config'
import type { Result } from './result.ts'
import type { HttpContext } from './context.ts'
import { validateResponse } from './validate-response.ts'
import { type HttpResponse, httpResponse } from './response.ts'

/** A handler's answer as a reply: JSON, text, nothing, or "not modified" to a caller that has it already. */
export function toHttpResponse(context: HttpContext, { responses }: EndpointDefinition, answer: Result): HttpResponse {
  const { status, headers, cookies } = answer
  const promised = responses[status]
  if (promised === undefined) throw new Error(`The endpoint does not promise the status ${status}.`)
  if (matchesEtag(headers['etag'], context)) return httpResponse(304, null, headers)
  const text = textOf(promised, answer.body)
  if (text === null) return httpResponse(status, null, headers, cookies)
  return httpResponse(status, text, { 'content-type': promised.contentType ?? 'application/json', ...headers }, cookies)
}

function textOf({ schema, contentType }: ResponseDefinition, body: unknown): string | null {
  if (schema === undefined) return contentType === undefined ? null : String(body)
  if (body === undefined) throw new Error('The endpoint promises a body.')
  const text = JSON.stringify(body)
  if (config.PLAT_CHECK_RESPONSES === '1') validateResponse(schema, text)
  return text
}

/** Whether the caller holds what the tag names. A gateway on the way may have weakened the tag. */
export function matchesEtag(etag: string | undefined, { env }: HttpContext): boolean {
  const held = (env.event.headers['if-none-match'] ?? '').split(',')
  return etag !== undefined && held.some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
