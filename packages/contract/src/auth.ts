import * as z from 'zod'
import { id, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { permissions } from './permission.ts'

/** How long a refresh token may wait for its one use. */
export const refreshTokenSeconds = 7 * 24 * 3600

/** Section 2: the answer of setup completion, both login endpoints and refresh. */
export const TokenSet = z
  .object({
    accessToken: z.string().max(4000),
    refreshToken: z.string().max(200),
    expiresIn: z.int32().min(1).max(900).meta({ description: 'Seconds', example: 900 }),
    tokenType: z.literal('Bearer'),
  })
  .meta({ id: 'TokenSet' })

export const Credentials = z
  .object({
    username: z.string().min(1).max(254).meta({ example: 'ada' }),
    password: z.string().min(1).max(1024).meta({ format: 'password', example: 'correct horse battery' }),
  })
  .meta({ id: 'Credentials' })

export const RefreshRequest = z.object({ refreshToken: z.string().min(1).max(500) }).meta({ id: 'RefreshRequest' })

/** The last step of a sign-in with an identity provider: tokens never stand in an address. */
export const SignInCode = z.object({ code: z.string().min(1).max(200) }).meta({ id: 'SignInCode' })

/** User profile of section 2; `permissions` is an addition (D14). */
export const UserProfile = z
  .object({
    id: id('user'),
    username: z.string().max(64).meta({ example: 'ada' }),
    email: z.string().max(254).meta({ example: 'ada@example.com' }),
    roles: z
      .array(z.string().max(50))
      .max(20)
      .meta({ example: ['Operator'] }),
    organisationId: id('org'),
    authProvider: z.string().max(50).meta({ example: 'local' }),
    createdAt: timestamp,
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
  method: 'POST',
  access: 'public',
  tag: 'Authentication',
  request: { body: Credentials },
  responses: { 200: { description: 'Signed in', schema: TokenSet } },
  fails: ['invalid_credentials', 'conflict'],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'queue:events'],
} as const

export const login = endpoint({
  ...signIn,
  path: '/api/v1/auth/login',
  summary: 'Sign in',
  description:
    'With the local account of this name; where there is none, with the directories among the identity providers. A directory that cannot be asked answers 503, unless another one knows name and password.',
  fails: [...signIn.fails, 'directory_unreachable', 'username_taken'],
  uses: [...signIn.uses, 'secret:identity'],
})

export const localLogin = endpoint({
  ...signIn,
  path: '/api/v1/auth/local-login',
  summary: 'Sign in with a local account',
})

export const refresh = endpoint({
  method: 'POST',
  path: '/api/v1/auth/refresh',
  access: 'public',
  tag: 'Authentication',
  summary: 'Trade a refresh token for a new token set',
  description: 'A refresh token works once. Using it twice ends the session (D4).',
  request: { body: RefreshRequest },
  responses: { 200: { description: 'A new token set', schema: TokenSet } },
  fails: ['invalid_refresh_token'],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'queue:events'],
})

export const logout = endpoint({
  method: 'POST',
  path: '/api/v1/auth/logout',
  access: 'user',
  tag: 'Authentication',
  summary: 'End the session',
  description: 'Revokes every refresh token of this sign-in; the access token stays valid until it expires.',
  responses: { 204: { description: 'The session has ended' } },
  uses: ['table:write', 'queue:events'],
})

export const me = endpoint({
  method: 'GET',
  path: '/api/v1/auth/me',
  access: 'user',
  tag: 'Authentication',
  summary: 'The signed-in user',
  responses: { 200: { description: 'The profile', schema: UserProfile } },
  uses: ['table:read'],
})
