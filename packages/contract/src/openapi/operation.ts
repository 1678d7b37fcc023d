import type { RouteConfig } from '@hono/zod-openapi'
import { type Access, isIdempotent, mayOmitBody } from '../endpoint.ts'
import type { Route } from '../index.ts'
import { isPermission } from '../permission.ts'
import { responsesOf } from './responses.ts'

const accessNotes: Partial<Record<Access, string>> = {
  public: 'Requires no token.',
  user: 'Requires a signed-in user.',
  session: 'Requires an access token of any signed-in user. API tokens are not accepted.',
  relay: 'Requires an enrolled relay and a token that the relay has signed.',
}

const noteOf = (access: Access): string => accessNotes[access] ?? `Requires the permission \`${access}\`.`

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return []
  return access === 'relay' ? [{ relayToken: [] }] : [{ bearer: [] }]
}

const keyDescription =
  'Makes the request idempotent: for 24 hours, a retry with the same key and body changes nothing and returns the first response with the header `Idempotency-Replayed: true`. Only successful responses are stored, so a rejected request can be corrected and sent with the same key. 1 to 200 visible ASCII characters that cannot be guessed, such as a UUID.'

export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header' as const,
  description: keyDescription,
  schema: { type: 'string' as const, minLength: 1, maxLength: 200, example: '3f0f9c5e-0b6e-4b8e-9d4e-6a8f6b7c1d2e' },
}

/**
 * Converts an endpoint to a route of the OpenAPI generator. Omits the platform's own fields from the document. `command`
 * is an example of a `plat` command for the endpoint.
 */
export function operationOf({ operationId, endpoint }: Route, command: string | undefined): RouteConfig {
  const { method, path, tags, summary, description, access, request } = endpoint
  const body = request?.body
  const isOptional = mayOmitBody(endpoint)
  return {
    method,
    path,
    operationId,
    tags: [...tags],
    summary,
    description: [description, noteOf(access)].filter(Boolean).join('\n\n'),
    security: securityOf(access),
    ...(isPermission(access) && { 'x-permission': access }),
    ...(command !== undefined && { 'x-codeSamples': [{ lang: 'Shell', label: 'plat', source: command }] }),
    ...(isIdempotent(endpoint) && { parameters: [{ $ref: `#/components/parameters/${idempotencyKey.name}` }] }),
    ...(request && { request: isOptional ? { ...request, body: { content: {}, ...body, required: false } } : request }),
    responses: responsesOf(endpoint),
  }
}
