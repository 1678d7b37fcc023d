import * as z from 'zod'
import { id, line, listOf, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { roleNames } from './permission.ts'

/** Identity providers: who signs people in beside the platform itself (section 2, D41). */

export const providerTypes = ['CloudDirectory', 'LDAP', 'OIDC', 'OpenSourceIdp'] as const
export type ProviderType = (typeof providerTypes)[number]

export const providerStatuses = ['Configured', 'ConsentPending', 'ConsentGranted', 'ConsentDenied', 'Disabled'] as const

/** Parsers of addresses drop or bend spaces, line ends and backslashes: they are refused before one sees them. */
const address = (protocol: RegExp) =>
  z
    .string()
    .max(500)
    .regex(/^[\x21-\x5b\x5d-\x7e]+$/, 'must be an address in ASCII without spaces')
    .check(z.url({ protocol }))
const httpUrl = address(/^https?$/)
const attribute = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9.;:/_-]*$/, 'must be the name of a claim or attribute')
// oxlint-disable-next-line no-control-regex
const oneLine = /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$/u
/** Text that is passed on as it is. */
const exact = (max: number) => z.string().min(1).max(max).regex(oneLine, 'must not hold control characters')
const distinguishedName = exact(500)
const secret = (max: number) => exact(max).meta({ format: 'password', writeOnly: true })

/** A group of the provider, and the role that its members get here. */
const RoleMapping = z
  .object({ group: line(1, 500), role: z.enum(roleNames) })
  .meta({ id: 'RoleMapping', example: { group: 'platform-operators', role: 'Operator' } })

const commonFields = {
  displayName: line(1, 100)
    .optional()
    .meta({ description: 'What people choose at sign-in', example: 'Acme directory' }),
  enabled: z.boolean().optional().meta({ description: 'Default true; a disabled one ends its users’ sessions' }),
  roleMappings: z.array(RoleMapping).max(100).optional(),
  defaultRole: z.enum(roleNames).optional().meta({ description: 'Of whom no group maps; default Viewer' }),
}

/** What is shown of a provider again; what its type needs of it is decided by the platform (D41). */
const settingFields = {
  tenantId: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[A-Za-z0-9][A-Za-z0-9.-]*$/, 'must be a tenant id or domain')
    .optional(),
  clientId: exact(500).optional(),
  authorityHost: httpUrl.optional().meta({ description: 'CloudDirectory; default https://login.microsoftonline.com' }),
  issuer: httpUrl.optional().meta({ description: 'OIDC' }),
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
  url: address(/^ldaps?$/)
    .optional()
    .meta({ description: 'LDAP; ldap: needs startTls' }),
  bindDn: distinguishedName.optional(),
  userSearchBase: distinguishedName.optional(),
  startTls: z.boolean().optional(),
  caCertificate: z
    .string()
    .max(20_000)
    .optional()
    .meta({ description: 'PEM; LDAP. Whom to trust beside the usual ones' }),
  userLoginAttribute: attribute.optional().meta({ description: 'Default uid' }),
  groupSearchBase: distinguishedName.optional(),
  groupMemberAttribute: attribute.optional().meta({ description: 'Default member' }),
}

/** Identity provider request of section 2 with what D41 adds: it adds a provider, or changes the one of the same place. */
export const ProviderRequest = z
  .object({
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

/** Identity provider of section 2. Secrets never come back. */
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
    redirectUri: z.string().max(700).optional().meta({ description: 'To be registered with the provider' }),
    consentRedirectUri: z.string().max(700).optional().meta({ description: 'To be registered with the provider, too' }),
  })
  .meta({ id: 'IdentityProvider' })

const ProviderTest = z
  .object({
    ok: z.boolean(),
    checks: z.array(z.object({ name: z.string().max(50), ok: z.boolean(), message: z.string().max(500) })).max(10),
  })
  .meta({
    id: 'IdentityProviderTest',
    example: { ok: true, checks: [{ name: 'discovery', ok: true, message: 'The issuer describes itself.' }] },
  })

export type ProviderRequest = z.infer<typeof ProviderRequest>
export type Provider = z.infer<typeof Provider>
export type ProviderTest = z.infer<typeof ProviderTest>

const admin = { access: 'platform:admin', tag: 'Identity providers' } as const
const params = z.object({ id: pathId('idp') })

export const listProviders = endpoint({
  ...admin,
  method: 'GET',
  path: '/api/v1/platform/identity/providers',
  summary: 'The identity providers',
  responses: { 200: { description: 'The providers', schema: listOf(Provider, 50) } },
  uses: ['table:read'],
})

export const configureProvider = endpoint({
  ...admin,
  method: 'POST',
  path: '/api/v1/platform/identity/providers',
  summary: 'Add an identity provider, or change one',
  description:
    'A provider of the same type and issuer, tenant or url is changed: what the request leaves out of its secrets stays, all else is as the request says.',
  request: { body: ProviderRequest },
  responses: { 201: { description: 'The provider', schema: Provider } },
  fails: ['idp_config_invalid', 'url_not_allowed', 'role_not_grantable', 'limit_reached', 'conflict'],
  uses: [
    'table:read',
    'table:write',
    'secret:identity',
    'secret:identity-write',
    'secret:identity-remove',
    'queue:events',
  ],
})

export const deleteProvider = endpoint({
  ...admin,
  method: 'DELETE',
  path: '/api/v1/platform/identity/providers/{id}',
  summary: 'Remove an identity provider',
  description:
    'Its users stay and cannot sign in: their sessions end at their next refresh, and their API tokens are refused at once.',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  fails: ['identity_provider_not_found', 'conflict'],
  uses: ['table:read', 'table:write', 'secret:identity-remove', 'queue:events'],
})

export const testProvider = endpoint({
  ...admin,
  method: 'POST',
  path: '/api/v1/platform/identity/providers/{id}/test',
  summary: 'Try whether the platform can work with a provider',
  request: { params },
  mayWait: true,
  responses: { 200: { description: 'What was tried, and how it went', schema: ProviderTest } },
  fails: ['identity_provider_not_found'],
  uses: ['table:read', 'table:write', 'secret:identity', 'queue:events'],
})

export const requestConsent = endpoint({
  ...admin,
  method: 'POST',
  path: '/api/v1/platform/identity/providers/{id}/consent',
  summary: 'Begin to ask the provider’s operator for consent',
  request: { params },
  mayWait: true,
  responses: {
    200: {
      description: 'The address to open in a browser, within ten minutes',
      schema: z.object({ url: z.string().max(4000) }).meta({ id: 'ConsentRequest' }),
    },
  },
  fails: ['identity_provider_not_found', 'consent_not_applicable', 'idp_config_invalid'],
  uses: ['table:read', 'table:write', 'queue:events'],
})

const text = (max: number) => z.string().max(max).optional()

/** What providers send back (D3). Of another length than these it is none of ours. */
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
  tag: 'Identity providers',
  summary: 'The provider’s operator has answered',
  description:
    'Called by a browser that the identity provider sends back (D3), with the `state` of the request for consent, or by a bearer with platform:admin.',
  request: { query: ConsentCallback },
  responses: { 302: { description: 'To the identity settings of the portal, with the result' } },
  fails: ['unauthenticated'],
  uses: ['table:read', 'table:write', 'queue:events'],
} as const

export const consentReturned = endpoint({ ...consentCallback, method: 'GET' })
export const consentPosted = endpoint({
  ...consentCallback,
  method: 'POST',
  request: { ...consentCallback.request, queryInForm: true },
})
