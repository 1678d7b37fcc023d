import type { components } from '../../../../contract/openapi.d.ts'

export type Provider = components['schemas']['IdentityProvider']
export type ProviderRequest = components['schemas']['IdentityProviderRequest']
export type ProviderType = Provider['type']

/** A field of the request that is edited as text. */
export type SettingName = Exclude<
  keyof ProviderRequest,
  'type' | 'displayName' | 'enabled' | 'roleMappings' | 'defaultRole' | 'startTls'
>

// Lists are separated by spaces; certificates have several lines; secrets are never shown.
type SettingFormat = 'text' | 'url' | 'secret' | 'list' | 'certificate'

export interface Setting {
  name: SettingName
  label: string
  hint?: string
  defaultValue?: string
  example?: string
  format?: SettingFormat
  /** The values to choose from, with their labels. */
  options?: readonly { value: string; label: string }[]
}

export interface ProviderTypeSpec {
  label: string
  /** Settings that identify a provider. They cannot be changed. */
  identifying: readonly Setting[]
  required: readonly Setting[]
  optional: readonly Setting[]
}

const client = { name: 'clientId', label: 'Client id' } as const
const secret = { name: 'clientSecret', label: 'Client secret', format: 'secret' } as const
const claims = [
  { name: 'scopes', label: 'Scopes', format: 'list' },
  { name: 'usernameClaim', label: 'Username claim', defaultValue: 'preferred_username' },
  { name: 'emailClaim', label: 'E-mail claim', defaultValue: 'email' },
  { name: 'groupsClaim', label: 'Groups claim', defaultValue: 'groups' },
] as const satisfies Setting[]

export const providerTypeSpecs: Readonly<Record<ProviderType, ProviderTypeSpec>> = {
  OIDC: {
    label: 'OpenID Connect',
    identifying: [
      {
        name: 'issuer',
        label: 'Issuer',
        example: 'https://id.example.com',
        format: 'url',
        hint: 'Exactly as the provider publishes it.',
      },
    ],
    required: [client, secret],
    optional: claims,
  },
  CloudDirectory: {
    label: 'Cloud directory (Microsoft Entra ID)',
    identifying: [
      { name: 'tenantId', label: 'Tenant', hint: 'Tenant ID or a verified domain.' },
      {
        name: 'authorityHost',
        label: 'Authority',
        format: 'url',
        defaultValue: 'https://login.microsoftonline.com',
        hint: 'Differs in national clouds.',
      },
    ],
    required: [client, secret],
    optional: claims,
  },
  OpenSourceIdp: {
    label: 'Open-source identity provider (Keycloak)',
    identifying: [
      { name: 'baseUrl', label: 'Address', example: 'https://sso.example.com', format: 'url' },
      { name: 'realm', label: 'Realm' },
    ],
    required: [client, secret],
    optional: claims,
  },
  LDAP: {
    label: 'Directory (LDAP)',
    identifying: [
      {
        name: 'url',
        label: 'Address',
        example: 'ldaps://directory.example.com',
        format: 'url',
        hint: 'ldaps://, or ldap:// with StartTLS.',
      },
    ],
    required: [
      { name: 'bindDn', label: 'Bind DN', example: 'cn=platform,dc=example,dc=com' },
      { name: 'bindPassword', label: 'Bind password', format: 'secret' },
      { name: 'userSearchBase', label: 'User search base (DN)', example: 'ou=people,dc=example,dc=com' },
    ],
    optional: [
      { name: 'groupSearchBase', label: 'Group search base (DN)', hint: 'Leave empty to use memberOf.' },
      { name: 'groupMemberAttribute', label: 'Group member attribute', defaultValue: 'member' },
      {
        name: 'nestedGroups',
        label: 'Nested groups',
        options: [
          { value: 'none', label: 'Only direct members' },
          { value: 'matchingRule', label: 'Resolved by Active Directory' },
          { value: 'recursive', label: 'Searched recursively' },
        ],
        hint: 'The recursive search needs a group search base.',
      },
      { name: 'userLoginAttribute', label: 'User login attribute', defaultValue: 'uid' },
      {
        name: 'caCertificate',
        label: 'Trusted certificates',
        format: 'certificate',
        hint: 'PEM. Required if the certificate authority is not public.',
      },
    ],
  },
}

export const providerTypes = ['OIDC', 'CloudDirectory', 'OpenSourceIdp', 'LDAP'] as const satisfies ProviderType[]

/** Whether the user must enter a value for a setting: the type needs it and it has no default. */
export const isRequiredSetting = ({ identifying, required }: ProviderTypeSpec, setting: Setting): boolean =>
  setting.defaultValue === undefined && (identifying.includes(setting) || required.includes(setting))

/** Returns the text of the sign-in page for a provider. */
export const signInLabelOf = (type: ProviderType, displayName: string): string =>
  type === 'LDAP' ? `Accounts of ${displayName} sign in here too.` : `Continue with ${displayName}`
