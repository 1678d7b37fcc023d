import * as z from 'zod'
import { SignInCode, TokenSet } from './auth.ts'
import { id, listOf, pathId } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { providerTypes } from './identity.ts'
import { portalPath } from './portal-paths.ts'

/** An identity provider that the sign-in page offers. */
export const SignInOption = z
  .object({
    id: id('idp'),
    type: z.enum(providerTypes),
    displayName: z.string().max(100),
    authorizeUrl: z.string().max(700).optional().meta({
      description: 'Sign-in address for browsers; absent for LDAP, which uses name and password at /auth/login',
    }),
  })
  .meta({ id: 'SignInChoice' })

export type SignInOption = z.infer<typeof SignInOption>

const params = z.object({ id: pathId('idp') })
const text = (max: number) => z.string().max(max).optional()

export const listSignInOptions = createRoute({
  method: 'get',
  path: '/api/v1/auth/providers',
  access: 'public',
  tags: ['Authentication'],
  summary: 'Identity providers available at sign-in',
  responses: { 200: { description: 'The enabled identity providers', content: json(listOf(SignInOption, 50)) } },
  capabilities: ['table:read'],
})

/** Errors of a sign-in with an identity provider, which the portal's sign-in page shows. */
export const signInErrors = [
  'sign_in_expired',
  'provider_unavailable',
  'provider_unreachable',
  'provider_error',
  'access_denied',
  'answer_invalid',
  'groups_incomplete',
  'internal_error',
] as const
export type SignInError = (typeof signInErrors)[number]

export const authorize = createRoute({
  method: 'get',
  path: '/api/v1/auth/oidc/{id}/authorize',
  access: 'public',
  tags: ['Authentication'],
  summary: 'Start a sign-in with an identity provider',
  description:
    'For browsers: redirects to the provider and binds the result to this browser with a cookie. A browser can have eight sign-ins in progress.',
  request: {
    params,
    query: z.strictObject({
      returnTo: z
        .string()
        .max(500)
        .regex(portalPath, 'must be a path of the portal')
        .optional()
        .meta({ description: 'Page of the portal to open after sign-in', example: '/clusters' }),
    }),
  },
  responses: {
    302: {
      description: 'Redirect to the provider, or to the sign-in page with an error if the provider is unreachable',
    },
  },
  errors: ['identity_provider_not_found'],
  capabilities: ['table:read', 'table:write'],
})

export const callback = createRoute({
  method: 'get',
  path: '/api/v1/auth/oidc/{id}/callback',
  access: 'public',
  tags: ['Authentication'],
  summary: 'Callback of a sign-in with an identity provider',
  description: `Always redirects to the sign-in page of the portal: with \`code\`, which can be exchanged for tokens once within one minute, and \`returnTo\`; or with \`error\`, one of ${signInErrors.join(', ')}, \`traceId\` and, if the sign-in is known, its \`returnTo\`.`,
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
    302: { description: 'Redirect to the sign-in page of the portal, with a code or an error' },
  },
  capabilities: ['table:read', 'table:write', 'secret:identity', 'queue:events'],
})

export const exchangeCode = createRoute({
  method: 'post',
  path: '/api/v1/auth/oidc/token',
  access: 'public',
  tags: ['Authentication'],
  summary: 'Exchange the code of a sign-in for tokens',
  description:
    'The code is valid once, within one minute, and only with the cookie of the browser that started the sign-in.',
  request: { body: jsonBody(SignInCode) },
  responses: { 200: { description: 'Signed in', content: json(TokenSet) } },
  errors: ['sign_in_code_invalid', 'conflict'],
  capabilities: ['table:read', 'table:write', 'secret:access-keys', 'queue:events'],
})
