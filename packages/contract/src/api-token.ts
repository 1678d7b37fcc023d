import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { permissions } from './permission.ts'

/** Maximum number of unrevoked API tokens of one user, including expired ones. */
export const apiTokenLimit = 50

const grants = z
  .array(z.enum(permissions))
  .max(permissions.length)
  .meta({ example: ['clusters:read', 'jobs:write'] })

/**
 * An API token. A request with the token has only the permissions that both the token and its user have at the time of
 * the request.
 */
export const ApiToken = z
  .object({
    id: id('tok'),
    name: z.string().max(100).meta({ example: 'nightly backup' }),
    permissions: grants,
    expiresAt: timestamp.nullable().meta({ description: 'null if it never expires' }),
    createdAt: timestamp,
    lastUsedAt: timestamp
      .nullable()
      .meta({ description: 'Time of the last use, rounded to the hour; null until the first use' }),
  })
  .meta({ id: 'ApiToken' })

export const CreatedApiToken = ApiToken.extend({
  token: z.string().max(100).meta({
    description: 'The bearer token. It is shown only once',
    example: 'plat_01jd8w5k3zr9x2m4c7t6v0b1qa_X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA4iOoVxM6kNt',
  }),
}).meta({ id: 'CreatedApiToken' })

export const ApiTokenCreation = z
  .strictObject({
    name: line(1, 100).meta({ example: 'nightly backup' }),
    expiresAt: z.iso.datetime({ offset: true }).max(40).nullable().optional().meta({
      description:
        'Expiry time in the future, or null for never. Default and maximum are settings of the organisation; initially, tokens expire after 365 days and have no maximum',
      example: '2027-11-21T09:30:00.000Z',
    }),
    permissions: grants.optional().meta({
      description:
        'A subset of the user’s permissions; default: all current permissions of the user. modules:install requires platform:admin',
    }),
  })
  .meta({ id: 'ApiTokenCreation' })

export type ApiToken = z.infer<typeof ApiToken>
export type CreatedApiToken = z.infer<typeof CreatedApiToken>
export type ApiTokenCreation = z.infer<typeof ApiTokenCreation>

// API tokens cannot manage tokens, so a leaked token cannot create another one that outlives it.
const common = { access: 'session', tags: ['Users'] } as const

export const listApiTokens = createRoute({
  ...common,
  method: 'get',
  path: '/api/v1/users/me/tokens',
  summary: 'The caller’s API tokens, newest first',
  responses: { 200: { description: 'API tokens', content: json(listOf(ApiToken, apiTokenLimit)) } },
  capabilities: ['table:read'],
})

export const createApiToken = createRoute({
  ...common,
  method: 'post',
  path: '/api/v1/users/me/tokens',
  summary: 'Create an API token',
  description:
    'Send `token` of the response as the bearer token of requests. Requests that manage API tokens or sessions reject it.',
  request: { body: jsonBody(ApiTokenCreation) },
  responses: { 201: { description: 'The API token, with its secret', content: json(CreatedApiToken) } },
  errors: ['limit_reached', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const deleteApiToken = createRoute({
  ...common,
  method: 'delete',
  path: '/api/v1/users/me/tokens/{id}',
  summary: 'Revoke an API token',
  description: 'The token is rejected from now on.',
  request: { params: z.object({ id: pathId('tok') }) },
  responses: { 204: { description: 'Revoked' } },
  errors: ['token_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

export const revokeUserTokens = createRoute({
  method: 'delete',
  path: '/api/v1/users/{id}/tokens',
  access: 'users:admin',
  tags: ['Users'],
  summary: 'Revoke all API tokens of a user',
  description:
    'The tokens are rejected from now on. The request fails with 403 if the user has more permissions than the caller.',
  request: { params: z.object({ id: pathId('user') }) },
  responses: { 204: { description: 'Revoked' } },
  errors: ['user_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
