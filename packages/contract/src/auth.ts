import * as z from 'zod'
import { id, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { permissions } from './permission.ts'

/** Lifetime of a refresh token, in seconds. */
export const refreshTokenSeconds = 7 * 24 * 3600

/** Tokens of a session, returned by the completion of setup, by each sign-in of a program and by refresh. */
export const TokenSet = z
  .object({
    accessToken: z.string().max(4000),
    refreshToken: z.string().max(200),
    expiresIn: z.int32().min(1).max(900).meta({ description: 'Seconds', example: 900 }),
    tokenType: z.literal('Bearer'),
    notice: z.string().max(500).optional().meta({
      description: 'Message for the user after a sign-in, such as that the roles could not be updated',
    }),
  })
  .meta({ id: 'TokenSet' })

export const Credentials = z
  .strictObject({
    username: z.string().min(1).max(254).meta({ example: 'ada' }),
    password: z.string().min(1).max(1024).meta({ format: 'password', example: 'correct horse battery' }),
  })
  .meta({ id: 'Credentials' })

/** Headers of a refresh. A refresh whose response was lost can be repeated with the same key for 60 seconds. */
export const RefreshHeaders = z.object({
  'idempotency-key': z.string().min(1).max(200).optional().meta({
    description:
      'Random text that is kept until the response arrives, such as a UUID. For 60 seconds, a retry with the same key and refresh token receives the same response. Without it, or with another key, a retry counts as theft and ends the session.',
  }),
})

export const RefreshRequest = z
  .strictObject({ refreshToken: z.string().min(1).max(500) })
  .meta({ id: 'RefreshRequest' })

/** Body of the request that exchanges the code of a sign-in for tokens, so that no URL contains tokens. */
export const SignInCode = z.strictObject({ code: z.string().min(1).max(200) }).meta({ id: 'SignInCode' })

/** A user with the permissions of all its roles; for a caller with an API token, only those that the token also has. */
export const UserProfile = z
  .object({
    id: id('user'),
    username: z.string().max(64).meta({ example: 'ada' }),
    displayName: z
      .string()
      .max(100)
      .optional()
      .meta({ description: 'Name at the identity provider, any text; not unique', example: 'Ada Lovelace' }),
    email: z.string().max(254).meta({ example: 'ada@example.com' }),
    roles: z
      .array(z.string().max(50))
      .max(20)
      .meta({ example: ['Operator'] }),
    organisationId: id('org'),
    authProvider: z.string().max(50).meta({ example: 'local' }),
    createdAt: timestamp,
    suspendedAt: timestamp.optional().meta({
      description:
        'Time since which the identity provider has not confirmed the user. The API tokens work again after a sign-in',
    }),
    permissions: z
      .array(z.enum(permissions))
      .max(permissions.length)
      .meta({ example: ['clusters:read', 'jobs:read', 'jobs:write', 'modules:read'] }),
  })
  .meta({ id: 'UserProfile' })

export type TokenSet = z.infer<typeof TokenSet>
export type Credentials = z.infer<typeof Credentials>
export type UserProfile = z.infer<typeof UserProfile>

const signIn = {
  method: 'post',
  access: 'public',
  tags: ['Authentication'],
  request: { body: jsonBody(Credentials) },
  responses: { 200: { description: 'Signed in', content: json(TokenSet) } },
  errors: ['invalid_credentials', 'conflict'],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'queue:events'],
} as const

export const login = createRoute({
  ...signIn,
  path: '/api/v1/auth/login',
  summary: 'Sign in',
  description:
    'Checks the local account of this name or, if there is none, the LDAP identity providers. A sign-in with an unreachable directory fails, and its administrators are notified.',
  errors: [...signIn.errors, 'username_taken', 'groups_incomplete', 'limit_reached'],
  capabilities: [...signIn.capabilities, 'secret:identity'],
})

export const localLogin = createRoute({
  ...signIn,
  path: '/api/v1/auth/local-login',
  summary: 'Sign in with a local account',
})

export const refresh = createRoute({
  method: 'post',
  path: '/api/v1/auth/refresh',
  access: 'public',
  tags: ['Authentication'],
  summary: 'Exchange a refresh token for a new token set',
  description:
    'A refresh token is valid once. Using it twice ends the session, except for a retry with the same `idempotency-key`. At most every 15 minutes, the identity provider of the user is asked whether it still has the user.',
  request: { headers: RefreshHeaders, body: jsonBody(RefreshRequest) },
  responses: { 200: { description: 'A new token set', content: json(TokenSet) } },
  errors: ['invalid_refresh_token'],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'secret:identity', 'queue:events'],
})

export const logout = createRoute({
  method: 'post',
  path: '/api/v1/auth/logout',
  access: 'user',
  tags: ['Authentication'],
  summary: 'End the session',
  description:
    'Revokes every refresh token of this sign-in. Until it expires, the access token can read but change nothing.',
  responses: { 204: { description: 'The session has ended' } },
  capabilities: ['table:write', 'queue:events'],
})

export const me = createRoute({
  method: 'get',
  path: '/api/v1/auth/me',
  access: 'user',
  tags: ['Authentication'],
  summary: 'The signed-in user',
  responses: { 200: { description: 'The profile', content: json(UserProfile) } },
  capabilities: ['table:read'],
})
