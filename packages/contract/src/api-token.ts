import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { permissions } from './permission.ts'

/** The most API tokens of one user, expired ones included. */
export const apiTokenLimit = 50

const grants = z
  .array(z.enum(permissions))
  .max(permissions.length)
  .meta({ example: ['clusters:read', 'jobs:write'] })

/** An API token (D16). What it may do is what it names and its user may do at that moment. */
export const ApiToken = z
  .object({
    id: id('tok'),
    name: z.string().max(100).meta({ example: 'nightly backup' }),
    permissions: grants,
    expiresAt: timestamp.nullable().meta({ description: 'null: never' }),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable().meta({ description: 'To the hour; null until it is used' }),
  })
  .meta({ id: 'ApiToken' })

export const CreatedApiToken = ApiToken.extend({
  token: z.string().max(100).meta({
    description: 'The bearer token; shown once',
    example: 'plat_01jd8w5k3zr9x2m4c7t6v0b1qa_X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA4iOoVxM6kNt',
  }),
}).meta({ id: 'CreatedApiToken' })

export const ApiTokenCreation = z
  .object({
    name: line(1, 100).meta({ example: 'nightly backup' }),
    expiresAt: z.iso
      .datetime({ offset: true })
      .max(40)
      .optional()
      .meta({ description: 'In the future; absent: never', example: '2027-11-21T09:30:00.000Z' }),
    permissions: grants.optional().meta({ description: 'Only what the user may do; absent: all that it may do now' }),
  })
  .meta({ id: 'ApiTokenCreation' })

export type ApiToken = z.infer<typeof ApiToken>
export type CreatedApiToken = z.infer<typeof CreatedApiToken>
export type ApiTokenCreation = z.infer<typeof ApiTokenCreation>

/** An API token manages no tokens: whoever finds one cannot make another that outlives it. */
const tokens = { access: 'session', tag: 'Users' } as const

export const listApiTokens = endpoint({
  ...tokens,
  method: 'GET',
  path: '/api/v1/users/me/tokens',
  summary: 'The caller’s API tokens, newest first',
  responses: { 200: { description: 'API tokens', schema: listOf(ApiToken, apiTokenLimit) } },
  uses: ['table:read'],
})

export const createApiToken = endpoint({
  ...tokens,
  method: 'POST',
  path: '/api/v1/users/me/tokens',
  summary: 'Create an API token',
  description: 'Send `token` of the answer as the bearer of any call but those about API tokens.',
  request: { body: ApiTokenCreation },
  responses: { 201: { description: 'The API token, with its secret', schema: CreatedApiToken } },
  fails: ['limit_reached', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

export const deleteApiToken = endpoint({
  ...tokens,
  method: 'DELETE',
  path: '/api/v1/users/me/tokens/{id}',
  summary: 'Revoke an API token',
  description: 'It is refused from now on.',
  request: { params: z.object({ id: pathId('tok') }) },
  responses: { 204: { description: 'Revoked' } },
  fails: ['token_not_found', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

export const revokeUserTokens = endpoint({
  method: 'DELETE',
  path: '/api/v1/users/{id}/tokens',
  access: 'users:admin',
  tag: 'Users',
  summary: 'Revoke all API tokens of a user',
  description: 'They are refused from now on. A user with more rights than the caller cannot be changed: 403.',
  request: { params: z.object({ id: pathId('user') }) },
  responses: { 204: { description: 'Revoked' } },
  fails: ['user_not_found', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events'],
})
