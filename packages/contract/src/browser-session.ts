import * as z from 'zod'
import { Credentials, RefreshHeaders, RefreshRequest, SignInCode, TokenSet } from './auth.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'

// Browser sessions keep tokens in cookies that scripts cannot read. Pages of other origins cannot use these endpoints.
// Programs use `/auth/login`, `/auth/oidc/token` and `/auth/refresh`.

const signInFields = [['username', 'password'], ['code'], ['refreshToken']] as const

/** The credentials of exactly one sign-in method: name and password, a sign-in code, or a refresh token. */
export const BrowserSignIn = z
  .strictObject({ ...Credentials.shape, ...SignInCode.shape, ...RefreshRequest.shape })
  .partial()
  .refine(
    (members) => signInFields.filter((names) => names.some((name) => members[name] !== undefined)).length === 1,
    'must contain either username and password, or code, or refreshToken',
  )
  .refine(
    ({ username, password }) => (username === undefined) === (password === undefined),
    'must contain both username and password',
  )
  .meta({
    id: 'BrowserSignIn',
    description:
      'One of three: `username` and `password`; the `code` that a sign-in with an identity provider returns; or `refreshToken`, which is consumed: its session continues in the browser.',
    example: { username: 'ada', password: 'correct horse battery' },
  })

export type BrowserSignIn = z.infer<typeof BrowserSignIn>

/** Response to a sign-in or refresh of a browser. The tokens are in cookies, not in the body. */
export const BrowserSession = TokenSet.pick({ expiresIn: true, notice: true }).meta({ id: 'BrowserSession' })

const session = { access: 'public', tags: ['Authentication'], sameOriginOnly: true } as const

export const beginSession = createRoute({
  ...session,
  method: 'post',
  path: '/api/v1/auth/session',
  summary: 'Sign in as a browser',
  description:
    'Like /auth/login, /auth/oidc/token and /auth/refresh, but sets the tokens as cookies that later requests from the platform’s pages carry. A sign-in with a password also sets a cookie that keeps failed sign-ins of others from limiting this browser.',
  request: { headers: RefreshHeaders, body: jsonBody(BrowserSignIn) },
  responses: { 200: { description: 'Signed in; two cookies hold the tokens', content: json(BrowserSession) } },
  errors: [
    'invalid_credentials',
    'sign_in_code_invalid',
    'invalid_refresh_token',
    'conflict',
    'username_taken',
    'groups_incomplete',
    'limit_reached',
  ],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'secret:identity', 'queue:events'],
})

export const refreshSession = createRoute({
  ...session,
  method: 'post',
  path: '/api/v1/auth/session/refresh',
  summary: 'Renew the session of a browser',
  description:
    'Uses the refresh cookie, which is valid once: send one renewal at a time, with an `idempotency-key` that is kept until the response arrives. A 401 response removes the cookies.',
  request: { headers: RefreshHeaders },
  responses: { 200: { description: 'Renewed; two cookies hold the new tokens', content: json(BrowserSession) } },
  errors: ['invalid_refresh_token'],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'secret:identity', 'queue:events'],
})

export const endBrowserSession = createRoute({
  ...session,
  method: 'delete',
  path: '/api/v1/auth/session',
  summary: 'Sign out as a browser',
  description: 'Ends the session of the cookies, if any, and removes the cookies. Can be repeated.',
  responses: { 204: { description: 'Signed out' } },
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
