import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { roleNames } from './permission.ts'

export const providerTypes = ['CloudDirectory', 'LDAP', 'OIDC', 'OpenSourceIdp'] as const
export type ProviderType = (typeof providerTypes)[number]

export const providerStatuses = ['Configured', 'ConsentPending', 'ConsentGranted', 'ConsentDenied', 'Disabled'] as const

/** Problems of a provider that prevent or impair sign-ins. */
export const providerProblems = ['unreachable', 'answer_invalid', 'groups_incomplete'] as const
export type ProviderProblem = (typeof providerProblems)[number]

/** Ways to resolve nested groups of an LDAP directory. */
export const nestedGroupModes = ['none', 'matchingRule', 'recursive'] as const

// URL parsers silently remove or change spaces, line breaks and backslashes, so the pattern rejects them first.
const urlWithProtocol = (protocol: RegExp) =>
  z
    .string()
    .max(500)
    .regex(/^[\x21-\x5b\x5d-\x7e]+$/, 'must be an address in ASCII without spaces')
    .check(z.url({ protocol }))
const httpUrl = urlWithProtocol(/^https?$/)
const attribute = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9.;:/_-]*$/, 'must be the name of a claim or attribute')
// oxlint-disable-next-line no-control-regex
const oneLine = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$/
// The text is sent to the provider unchanged, so it is not trimmed.
const untrimmedText = (max: number) => z.string().min(1).max(max).regex(oneLine, 'must not contain control characters')
const distinguishedName = untrimmedText(500)
const secret = (max: number) => untrimmedText(max).meta({ format: 'password', writeOnly: true })

const RoleMapping = z
  .strictObject({ group: line(1, 500), role: z.enum(roleNames) })
  .meta({ id: 'RoleMapping', example: { group: 'platform-operators', role: 'Operator' } })

const commonFields = {
  displayName: line(1, 100)
    .optional()
    .meta({ description: 'Name shown on the sign-in page', example: 'Acme directory' }),
  enabled: z.boolean().optional().meta({ description: 'Default true. Disabling a provider ends its users’ sessions' }),
  roleMappings: z.array(RoleMapping).max(100).optional(),
  defaultRole: z
    .enum(roleNames)
    .optional()
    .meta({ description: 'Role for users without a mapped group; default Viewer' }),
}

// Settings of all provider types, without the secrets. The use case checks which settings a type requires.
const settingFields = {
  tenantId: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, 'must be a tenant id or domain')
    .optional(),
  clientId: untrimmedText(500).optional(),
  authorityHost: httpUrl.optional().meta({ description: 'CloudDirectory; default https://login.microsoftonline.com' }),
  issuer: httpUrl.optional().meta({ description: 'OIDC; the issuer exactly as the provider publishes it' }),
  baseUrl: httpUrl.optional().meta({ description: 'OpenSourceIdp; the issuer is `<baseUrl>/realms/<realm>`' }),
  realm: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*$/, 'must be the name of a realm')
    .optional(),
  scopes: z
    .array(
      z
        .string()
        .min(1)
        .max(100)
        .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/),
    )
    .max(20)
    .optional(),
  usernameClaim: attribute.optional(),
  emailClaim: attribute.optional(),
  groupsClaim: attribute.optional(),
  url: urlWithProtocol(/^ldaps?$/)
    .optional()
    .meta({ description: 'LDAP; ldap: needs startTls' }),
  bindDn: distinguishedName.optional(),
  userSearchBase: distinguishedName.optional(),
  startTls: z.boolean().optional(),
  caCertificate: z
    .string()
    .max(20_000)
    .optional()
    .meta({ description: 'LDAP; PEM certificates to trust in addition to the system’s' }),
  userLoginAttribute: attribute.optional().meta({ description: 'Default uid' }),
  groupSearchBase: distinguishedName.optional(),
  groupMemberAttribute: attribute.optional().meta({ description: 'Default member' }),
  nestedGroups: z.enum(nestedGroupModes).optional().meta({
    description:
      'Default none: only direct members. `matchingRule`: Active Directory resolves nested groups (1.2.840.113556.1.4.1941). `recursive`: searches for the groups of groups below `groupSearchBase`, up to 20 levels and 1,000 groups.',
  }),
}

/** Request to add an identity provider, or to replace the one of the same type and issuer, tenant or URL. */
export const ProviderRequest = z
  .strictObject({
    type: z.enum(providerTypes),
    ...settingFields,
    clientSecret: secret(2000).optional(),
    bindPassword: secret(2000).optional(),
    ...commonFields,
  })
  .meta({
    id: 'IdentityProviderRequest',
    example: { type: 'OIDC', issuer: 'https://id.example.com', clientId: 'platform', clientSecret: 'a long secret' },
  })

/** An identity provider. Secrets are never returned. */
export const Provider = z
  .object({
    id: id('idp'),
    type: z.enum(providerTypes),
    status: z.enum(providerStatuses),
    createdAt: timestamp,
    updatedAt: timestamp,
    ...settingFields,
    displayName: z.string().max(100),
    enabled: z.boolean(),
    roleMappings: z.array(RoleMapping).max(100),
    defaultRole: z.enum(roleNames),
    lastFailure: z
      .object({ problem: z.enum(providerProblems), detail: z.string().max(500), at: timestamp })
      .optional()
      .meta({
        description:
          'The last reported failure since the settings were changed. Each problem is reported at most once an hour.',
      }),
    redirectUri: z.string().max(700).optional().meta({ description: 'Register this URI with the provider' }),
    consentRedirectUri: z
      .string()
      .max(700)
      .optional()
      .meta({ description: 'Register this URI with the provider as well' }),
  })
  .meta({ id: 'IdentityProvider' })

const ProviderTest = z
  .object({
    ok: z.boolean(),
    checks: z.array(z.object({ name: z.string().max(50), ok: z.boolean(), message: z.string().max(500) })).max(10),
  })
  .meta({
    id: 'IdentityProviderTest',
    example: { ok: true, checks: [{ name: 'discovery', ok: true, message: 'The metadata of the issuer are valid.' }] },
  })

export type ProviderRequest = z.infer<typeof ProviderRequest>
export type Provider = z.infer<typeof Provider>
export type ProviderTest = z.infer<typeof ProviderTest>

const admin = { access: 'platform:admin', tags: ['Identity providers'] } as const
const params = z.object({ id: pathId('idp') })

export const listProviders = createRoute({
  ...admin,
  method: 'get',
  path: '/api/v1/platform/identity/providers',
  summary: 'The identity providers',
  responses: { 200: { description: 'The providers', content: json(listOf(Provider, 50)) } },
  capabilities: ['table:read'],
})

export const configureProvider = createRoute({
  ...admin,
  method: 'post',
  path: '/api/v1/platform/identity/providers',
  summary: 'Add an identity provider, or change one',
  description:
    'Replaces the provider of the same type and issuer, tenant or url, if there is one. Secrets that the request omits are kept.',
  request: { body: jsonBody(ProviderRequest) },
  responses: { 201: { description: 'The provider', content: json(Provider) } },
  errors: ['idp_config_invalid', 'url_not_allowed', 'role_not_grantable', 'limit_reached', 'conflict'],
  capabilities: [
    'table:read',
    'table:write',
    'secret:identity',
    'secret:identity-write',
    'secret:identity-remove',
    'queue:events',
  ],
})

export const deleteProvider = createRoute({
  ...admin,
  method: 'delete',
  path: '/api/v1/platform/identity/providers/{id}',
  summary: 'Remove an identity provider',
  description:
    'Its users remain but cannot sign in: their sessions end at the next refresh, and their API tokens are rejected immediately.',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  errors: ['identity_provider_not_found', 'conflict'],
  capabilities: ['table:read', 'table:write', 'secret:identity-remove', 'queue:events'],
})

export const testProvider = createRoute({
  ...admin,
  method: 'post',
  path: '/api/v1/platform/identity/providers/{id}/test',
  summary: 'Test the configuration of a provider',
  request: { params },
  responses: { 200: { description: 'The checks and their results', content: json(ProviderTest) } },
  errors: ['identity_provider_not_found'],
  capabilities: ['table:read', 'table:write', 'secret:identity', 'queue:events'],
})

export const requestConsent = createRoute({
  ...admin,
  method: 'post',
  path: '/api/v1/platform/identity/providers/{id}/consent',
  summary: 'Request consent from the provider’s administrator',
  request: { params },
  responses: {
    200: {
      description: 'The address to open in a browser within ten minutes',
      content: json(z.object({ url: z.string().max(4000) }).meta({ id: 'ConsentRequest' })),
    },
  },
  errors: ['identity_provider_not_found', 'consent_not_applicable', 'idp_config_invalid'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
})

const text = (max: number) => z.string().max(max).optional()

/** Query parameters that an identity provider sends. The limits reject oversized requests from other senders. */
export const ConsentCallback = z.object({
  state: text(500),
  code: text(4000),
  iss: text(1000),
  tenant: text(200),
  admin_consent: text(20),
  scope: text(2000),
  error: text(200),
  error_description: text(2000),
})
export type ConsentCallback = z.infer<typeof ConsentCallback>

const consentCallback = {
  path: '/api/v1/platform/identity/consent-callback',
  access: 'public',
  tags: ['Identity providers'],
  summary: 'Consent callback of the identity provider',
  description:
    'Called by the browser that the identity provider redirects with the `state` of the consent request, or by a caller with platform:admin.',
  request: { query: ConsentCallback },
  responses: { 302: { description: 'Redirect to the identity settings of the portal, with the result' } },
  errors: ['unauthenticated'],
  capabilities: ['table:read', 'table:write', 'queue:events'],
} as const

export const consentReturned = createRoute({ ...consentCallback, method: 'get' })
export const consentPosted = createRoute({
  ...consentCallback,
  method: 'post',
  request: {
    ...consentCallback.request,
    body: { content: { 'application/x-www-form-urlencoded': { schema: ConsentCallback }, ...json(ConsentCallback) } },
  },
})
