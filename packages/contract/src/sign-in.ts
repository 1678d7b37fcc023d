import * as z from 'zod'
import { SignInCode, TokenSet } from './auth.ts'
import { id, listOf, pathId } from './common.ts'
import { endpoint } from './endpoint.ts'
import { providerTypes } from './identity.ts'
import { portalPath } from './portal-paths.ts'

/** Signing in with an identity provider (D41): by OpenID Connect, in a browser. */

/** What anybody may know before signing in. */
export const SignInOption = z
  .object({
    id: id('idp'),
    type: z.enum(providerTypes),
    displayName: z.string().max(100),
    authorizeUrl: z
      .string()
      .max(700)
      .optional()
      .meta({ description: 'Where a browser signs in; absent for LDAP, which takes name and password at /auth/login' }),
  })
  .meta({ id: 'SignInChoice' })

export type SignInOption = z.infer<typeof SignInOption>

const params = z.object({ id: pathId('idp') })
const text = (max: number) => z.string().max(max).optional()

export const listSignInOptions = endpoint({
  method: 'GET',
  path: '/api/v1/auth/providers',
  access: 'public',
  tag: 'Authentication',
  summary: 'With whom one can sign in beside a local account',
  responses: { 200: { description: 'The enabled identity providers', schema: listOf(SignInOption, 50) } },
  uses: ['table:read'],
})

/** Why a sign-in with a provider has ended: all that the sign-in page of the portal is told. */
export const signInErrors = [
  'sign_in_expired',
  'provider_unavailable',
  'provider_unreachable',
  'provider_error',
  'access_denied',
  'answer_invalid',
  'internal_error',
] as const
export type SignInError = (typeof signInErrors)[number]

export const authorize = endpoint({
  method: 'GET',
  path: '/api/v1/auth/oidc/{id}/authorize',
  access: 'public',
  tag: 'Authentication',
  summary: 'Sign in with an identity provider: begin',
  description: 'For a browser: leads to the provider, and binds what comes back to this browser by a cookie.',
  request: {
    params,
    query: z.object({
      returnTo: z
        .string()
        .max(500)
        .regex(portalPath, 'must be a path of the portal')
        .optional()
        .meta({ description: 'Where the portal goes once signed in', example: '/clusters' }),
    }),
  },
  responses: {
    302: { description: 'To the provider, or with an error to the sign-in page where it cannot be reached' },
  },
  fails: ['identity_provider_not_found'],
  uses: ['table:read', 'table:write'],
})

export const callback = endpoint({
  method: 'GET',
  path: '/api/v1/auth/oidc/{id}/callback',
  access: 'public',
  tag: 'Authentication',
  summary: 'Sign in with an identity provider: the way back',
  description: `Answers a redirect to the sign-in page of the portal in any case: with \`code\`, which fetches the tokens within a minute and once, and \`returnTo\`; or with \`error\`, which is one of ${signInErrors.join(', ')}, and \`traceId\`.`,
  request: {
    params,
    query: z.object({
      state: text(500),
      code: text(4000),
      iss: text(1000),
      error: text(200),
      error_description: text(2000),
      session_state: text(500),
    }),
  },
  responses: {
    302: { description: 'To the sign-in page of the portal, with a code or with an error' },
  },
  uses: ['table:read', 'table:write', 'secret:identity', 'queue:events'],
})

export const exchangeCode = endpoint({
  method: 'POST',
  path: '/api/v1/auth/oidc/token',
  access: 'public',
  tag: 'Authentication',
  summary: 'Sign in with an identity provider: fetch the tokens',
  description: 'Within a minute, once, and with the cookie that the sign-in began with.',
  request: { body: SignInCode },
  responses: { 200: { description: 'Signed in', schema: TokenSet } },
  fails: ['sign_in_code_invalid', 'conflict'],
  uses: ['table:read', 'table:write', 'secret:signing-keys', 'queue:events'],
})
