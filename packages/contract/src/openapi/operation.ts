import type { ZodOpenApiOperationObject } from 'zod-openapi'
import type { Access, EndpointDefinition } from '../endpoint.ts'
import type { Route } from '../index.ts'
import { isPermission } from '../permission.ts'
import { responsesOf } from './responses.ts'

const accessNotes: Partial<Record<Access, string>> = {
  public: 'Needs no token.',
  user: 'Any signed-in user.',
  relay: 'An enrolled relay, with a token it has signed itself.',
}

const noteOf = (access: Access): string => accessNotes[access] ?? `Needs the permission \`${access}\`.`

function securityOf(access: Access): Record<string, string[]>[] {
  if (access === 'public') return []
  return access === 'relay' ? [{ relayToken: [] }] : [{ bearer: [] }]
}

function requestOf({ request }: EndpointDefinition): ZodOpenApiOperationObject | object {
  const { params, query, body } = request ?? {}
  return {
    ...((params ?? query) && { requestParams: { ...(params && { path: params }), ...(query && { query }) } }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
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
