import type { ZodOpenApiOperationObject } from 'zod-openapi'
import * as z from 'zod'
import { type Access, type EndpointDefinition, isIdempotent } from '../endpoint.ts'
import type { Route } from '../index.ts'
import { isPermission } from '../permission.ts'
import { responsesOf } from './responses.ts'

const accessNotes: Partial<Record<Access, string>> = {
  public: 'Needs no token.',
  user: 'Any signed-in user.',
  session: 'Any signed-in user, with an access token; an API token does not do.',
  relay: 'An enrolled relay, with a token it has signed itself.',
}

const noteOf = (access: Access): string => accessNotes[access] ?? `Needs the permission \`${access}\`.`

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return []
  return access === 'relay' ? [{ relayToken: [] }] : [{ bearer: [] }]
}

const IdempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .meta({
    description:
      'Makes the request repeatable: for 24 hours a repeat with the same key and body does nothing and gets the first answer, with the header `Idempotency-Replayed: true`. Only successes are kept, so that what was refused may be corrected under the same key. 1 to 200 visible characters of ASCII that nobody guesses, such as a UUID.',
    example: '3f0f9c5e-0b6e-4b8e-9d4e-6a8f6b7c1d2e',
    param: { id: 'Idempotency-Key' },
  })

function headersOf(endpoint: EndpointDefinition): z.ZodObject | undefined {
  const own = endpoint.request?.headers?.shape ?? {}
  const named = { ...own, ...(isIdempotent(endpoint) && { 'Idempotency-Key': IdempotencyKey }) }
  return Object.keys(named).length > 0 ? z.object(named) : undefined
}

function requestOf(endpoint: EndpointDefinition): ZodOpenApiOperationObject | object {
  const { params: path, query, queryInForm, body } = endpoint.request ?? {}
  const header = headersOf(endpoint)
  return {
    ...((path ?? query ?? header) && {
      requestParams: { ...(path && { path }), ...(query && { query }), ...(header && { header }) },
    }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    ...(queryInForm && { requestBody: { content: { 'application/x-www-form-urlencoded': { schema: query } } } }),
  }
}

/** One endpoint as an OpenAPI operation. */
export const operationOf = ({ operationId, endpoint }: Route): ZodOpenApiOperationObject => ({
  operationId,
  tags: [endpoint.tag],
  summary: endpoint.summary,
  description: [endpoint.description, noteOf(endpoint.access)].filter(Boolean).join('\n\n'),
  security: securityOf(endpoint.access),
  ...(isPermission(endpoint.access) && { 'x-permission': endpoint.access }),
  ...requestOf(endpoint),
  responses: responsesOf(endpoint),
})
