import * as z from 'zod'
import { Credentials, RefreshRequest, SignInCode, TokenSet } from './auth.ts'
import { endpoint } from './endpoint.ts'

/**
 * The session of a browser (5.2): the tokens of a sign-in in cookies that no script can read. For pages of the platform's own
 * origin alone; programs use the token endpoints.
 */

const ways = [['username', 'password'], ['code'], ['refreshToken']] as const

/** What proves who signs in; the fields of one way, and of no other. */
export const BrowserSignIn = z
  .object({ ...Credentials.shape, ...SignInCode.shape, ...RefreshRequest.shape })
  .partial()
  .refine(
    (given) => ways.filter((way) => way.some((name) => given[name] !== undefined)).length === 1,
    'must hold username and password, or code, or refreshToken',
  )
  .refine(
    ({ username, password }) => (username === undefined) === (password === undefined),
    'must hold both username and password',
  )
  .meta({
    id: 'BrowserSignIn',
    description:
      'One of three: `username` and `password`; `code`, as a sign-in with an identity provider leads back with; or `refreshToken`, which is used up: its session goes on in the browser.',
    example: { username: 'ada', password: 'correct horse battery' },
  })

export type BrowserSignIn = z.infer<typeof BrowserSignIn>

/** What a page may know of the session; the rest is in cookies. */
export const BrowserSession = TokenSet.pick({ expiresIn: true }).meta({ id: 'BrowserSession' })

const session = { access: 'public', tag: 'Authentication', sameOriginOnly: true } as const

export const beginSession = endpoint({
  ...session,
  method: 'POST',
  path: '/api/v1/auth/session',
  summary: 'Sign in as a browser',
  description:
    'As /auth/login, /auth/oidc/token and /auth/refresh do, but for the tokens, which go into cookies that every later request from a page of the platform carries.',
  request: { body: BrowserSignIn },
  responses: { 200: { description: 'Signed in; two cookies hold the tokens', schema: BrowserSession } },
  fails: [
    'invalid_credentials',
    'sign_in_code_invalid',
    'invalid_refresh_token',
    'conflict',
    'username_taken',
    'directory_unreachable',
  ],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'secret:identity', 'queue:events'],
})

export const refreshSession = endpoint({
  ...session,
  method: 'POST',
  path: '/api/v1/auth/session/refresh',
  summary: 'Renew the session of a browser',
  description:
    'By its cookie, which works once (D4): a page asks for one renewal at a time. After 401 the cookies are gone.',
  responses: { 200: { description: 'Renewed; two cookies hold the new tokens', schema: BrowserSession } },
  fails: ['invalid_refresh_token'],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'queue:events'],
})

export const endBrowserSession = endpoint({
  ...session,
  method: 'DELETE',
  path: '/api/v1/auth/session',
  summary: 'Sign out as a browser',
  description: 'Ends the session of the cookies, where there is one, and removes them. May be repeated.',
  responses: { 204: { description: 'Signed out' } },
  uses: ['table:read', 'table:write', 'queue:events'],
})
