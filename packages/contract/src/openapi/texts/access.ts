import type { Texts } from './text.ts'

const tokens = {
  refresh: 'X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA4iOoVxM6kNt',
  access: 'eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ1c2VyXzAxamQifQ.c2lnbmF0dXJl',
} as const

const providerFields = {
  type: ['Kind of provider; decides which of the other settings apply', 'OIDC'],
  tenantId: ['CloudDirectory; id or domain of the tenant', 'acme.example.com'],
  clientId: ['CloudDirectory, OIDC, OpenSourceIdp; id of the client that is registered for the platform', 'platform'],
  realm: ['OpenSourceIdp; name of the realm', 'acme'],
  scopes: [
    'OAuth scopes of sign-ins, in addition to `openid`; default: profile, email and, if supported, offline_access',
    ['profile', 'email'],
  ],
  usernameClaim: ['Claim with the user name; default preferred_username', 'preferred_username'],
  emailClaim: ['Claim with the e-mail address; default email', 'email'],
  groupsClaim: ['Claim with the groups, read if a group is mapped; default groups', 'groups'],
  bindDn: 'LDAP; distinguished name of the account that searches the directory',
  userSearchBase: 'LDAP; entry below which users are searched',
  startTls: 'LDAP; whether the connection switches to TLS first. Required with ldap:, not allowed with ldaps:',
  groupSearchBase:
    'LDAP; entry below which groups are searched. Without it, the attribute memberOf of the user names its groups',
} as const

export const accessTexts: Texts = {
  Error: {
    '': 'The body of every error',
    details: 'The invalid fields, at most 50. Present with `validation_failed` and `manifest_invalid`',
    requiredPermission: 'With `forbidden`: the permission that the caller lacks',
    howToRetrieve:
      'With `initial_admin_token_invalid` and `initial_admin_token_expired`: where the operator finds the token',
    setupComplete: 'With `setup_already_complete`: always true',
  },
  ErrorDetail: {
    '': 'One invalid field',
    in: ['Part of the request that contains the field; `manifest` is `module.json`', 'body'],
    path: ['JSON Pointer to the field', '/name'],
    code: ['Kind of violation', 'too_small'],
    message: ['Rule that the field violates', 'must have at least 3 characters'],
  },
  SetupStatus: {
    setupComplete: ['Always false: once setup is complete, the response is 403 `setup_already_complete`', false],
    wizardStep: ['Step at which the wizard starts, always `welcome`', 'welcome'],
  },
  SetupCompletion: {
    platformName: 'Name of the platform, shown in the portal',
    timezone: 'IANA time zone in which the portal shows times',
    adminEmail: 'E-mail address of the administrator',
    initialAdminToken: [undefined, 'X5b0pJ3m7uKQ2vTn9rYs1dEwZ8cLhGfA'],
  },
  TokenSet: {
    accessToken: ['Bearer token of requests, valid for `expiresIn` seconds', tokens.access],
    refreshToken: ['Token that is exchanged for the next token set, once, within 7 days', tokens.refresh],
    tokenType: 'Scheme of the `Authorization` header, always `Bearer`',
  },
  'RefreshRequest BrowserSignIn': {
    refreshToken: ['Refresh token of the newest token set', tokens.refresh],
  },
  'SignInCode BrowserSignIn': {
    code: ['Code that the callback of the identity provider put into the address', 'X5b0pJ3m7uKQ2vTn9rYs1dEw'],
  },
  Credentials: { username: 'Name of the user; for LDAP, the name in the directory' },
  UserProfile: {
    username: 'Name for sign-in',
    roles: 'Roles of the user; their permissions add up',
    authProvider: '`local`, or the identifier of the identity provider that manages the account',
    permissions: 'Permissions of all roles together',
  },
  PasswordChange: { currentPassword: 'Password before the change' },
  'ApiToken CreatedApiToken ApiTokenCreation': { name: 'Purpose of the token, for its list' },
  'ApiToken CreatedApiToken': { permissions: 'Permissions that the token has as long as its user has them' },
  RoleDescription: { name: ['Name of the role', 'Operator'], permissions: 'Permissions that the role grants' },
  'IdentityProvider IdentityProviderRequest': providerFields,
  IdentityProviderRequest: {
    clientSecret: 'Secret of the client. It is stored and never returned; omit it to keep the stored one',
    bindPassword: 'LDAP; password of `bindDn`. It is stored and never returned; omit it to keep the stored one',
    roleMappings: 'Roles of groups. A user gets the roles of all its groups',
  },
  IdentityProvider: {
    '': [
      'An identity provider. Secrets are never returned',
      {
        id: 'idp_01jd8w5k3zr9x2m4c7t6v0b1qa',
        type: 'OIDC',
        status: 'Configured',
        createdAt: '2026-11-21T09:30:00.000Z',
        updatedAt: '2026-11-21T09:30:00.000Z',
        issuer: 'https://id.example.com',
        clientId: 'platform',
        displayName: 'Acme directory',
        enabled: true,
        roleMappings: [{ group: 'platform-operators', role: 'Operator' }],
        defaultRole: 'Viewer',
        redirectUri: 'https://platform.example.com/api/v1/auth/oidc/idp_01jd8w5k3zr9x2m4c7t6v0b1qa/callback',
      },
    ],
    status: ['Whether sign-ins are possible; consent applies to CloudDirectory only', 'Configured'],
    displayName: 'Name shown on the sign-in page',
    enabled: 'Whether users can sign in with it',
    roleMappings: 'Roles of groups. A user gets the roles of all its groups',
    defaultRole: 'Role for users without a mapped group',
    'lastFailure.problem':
      'Kind of failure: the provider did not respond, it sent an error or an invalid response, or groups were missing',
    'lastFailure.detail': 'Cause of the failure, without secrets',
    'lastFailure.at': 'Time of the failure',
  },
  RoleMapping: { group: 'Name of the group as the provider sends it', role: 'Role that its members get' },
  IdentityProviderTest: {
    ok: 'Whether all checks succeeded',
    checks: 'The checks in the order in which they ran. A failed check ends the test',
    'checks.name': 'Name of the check',
    'checks.ok': 'Whether the check succeeded',
    'checks.message': 'Result, or the cause of the failure and the next step',
  },
  ConsentRequest: {
    url: ['Address of the provider that asks its administrator', 'https://login.example.com/adminconsent'],
  },
  SignInChoice: {
    type: ['Kind of provider', 'OIDC'],
    displayName: ['Name for the button of the sign-in page', 'Acme directory'],
  },
  'consentReturned consentPosted': {
    tenant: 'Tenant whose administrator decided',
    admin_consent: '`True` if the administrator consented',
    scope: 'Permissions that were granted',
  },
  callback: { session_state: 'State of the session at the provider; ignored' },
  'UserCreation UserUpdate': {
    email: 'E-mail address of the user',
    roles: 'All roles of the user; replaces the previous ones in an update',
  },
}
