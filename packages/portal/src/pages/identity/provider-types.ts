import type { components } from '../../../../contract/openapi.d.ts'

/** Settings of each provider type and their form fields. */

export type Provider = components['schemas']['IdentityProvider']
export type ProviderRequest = components['schemas']['IdentityProviderRequest']
export type ProviderType = Provider['type']

/** A member of the request that is edited as text. */
export type SettingName = Exclude<
  keyof ProviderRequest,
  'type' | 'displayName' | 'enabled' | 'roleMappings' | 'defaultRole' | 'startTls'
>

/** Secrets are never shown; lists are separated by spaces; certificates have several lines. */
type Look = 'text' | 'url' | 'secret' | 'list' | 'certificate'

export interface Setting {
  name: SettingName
  label: string
  hint?: string
  /** The platform's default. */
  usual?: string
  example?: string
  look?: Look
}

export interface ProviderTypeSpec {
  label: string
  /** These settings identify a provider. */
  place: readonly Setting[]
  needs: readonly Setting[]
  more: readonly Setting[]
}

const client = { name: 'clientId', label: 'Client id' } as const
const secret = { name: 'clientSecret', label: 'Client secret', look: 'secret' } as const
const claims = [
  { name: 'scopes', label: 'Scopes', usual: 'openid profile email', look: 'list' },
  { name: 'usernameClaim', label: 'Username claim', usual: 'preferred_username' },
  { name: 'emailClaim', label: 'E-mail claim', usual: 'email' },
  { name: 'groupsClaim', label: 'Groups claim', usual: 'groups' },
] as const satisfies Setting[]

export const providerTypeSpecs: Readonly<Record<ProviderType, ProviderTypeSpec>> = {
  OIDC: {
    label: 'OpenID Connect',
    place: [
      {
        name: 'issuer',
        label: 'Issuer',
        example: 'https://id.example.com',
        look: 'url',
        hint: 'Exactly as the provider publishes it.',
      },
    ],
    needs: [client, secret],
    more: claims,
  },
  CloudDirectory: {
    label: 'Cloud directory (Microsoft Entra ID)',
    place: [
      { name: 'tenantId', label: 'Tenant', hint: 'Tenant ID or a verified domain.' },
      {
        name: 'authorityHost',
        label: 'Authority',
        look: 'url',
        usual: 'https://login.microsoftonline.com',
        hint: 'Differs in national clouds.',
      },
    ],
    needs: [client, secret],
    more: claims,
  },
  OpenSourceIdp: {
    label: 'Open-source identity provider (Keycloak)',
    place: [
      { name: 'baseUrl', label: 'Address', example: 'https://sso.example.com', look: 'url' },
      { name: 'realm', label: 'Realm' },
    ],
    needs: [client, secret],
    more: claims,
  },
  LDAP: {
    label: 'Directory (LDAP)',
    place: [
      {
        name: 'url',
        label: 'Address',
        example: 'ldaps://directory.example.com',
        look: 'url',
        hint: 'ldaps://, or ldap:// with StartTLS.',
      },
    ],
    needs: [
      { name: 'bindDn', label: 'Bind DN', example: 'cn=platform,dc=example,dc=com' },
      { name: 'bindPassword', label: 'Bind password', look: 'secret' },
      { name: 'userSearchBase', label: 'User search base (DN)', example: 'ou=people,dc=example,dc=com' },
    ],
    more: [
      {
        name: 'groupSearchBase',
        label: 'Group search base (DN)',
        hint: 'Leave empty to use memberOf.',
      },
      { name: 'groupMemberAttribute', label: 'Group member attribute', usual: 'member' },
      { name: 'userLoginAttribute', label: 'User login attribute', usual: 'uid' },
      {
        name: 'caCertificate',
        label: 'Trusted certificates',
        look: 'certificate',
        hint: 'PEM. Required if the certificate authority is not public.',
      },
    ],
  },
}

/** In the order of the form. */
export const providerTypes = ['OIDC', 'CloudDirectory', 'OpenSourceIdp', 'LDAP'] as const satisfies ProviderType[]

/** Whether a setting is required: it is needed and has no default. */
export const isRequiredSetting = ({ place, needs }: ProviderTypeSpec, setting: Setting): boolean =>
  setting.usual === undefined && (place.includes(setting) || needs.includes(setting))

/** The provider's text on the sign-in page. */
export const signInLabelOf = (type: ProviderType, displayName: string): string =>
  type === 'LDAP' ? `Accounts of ${displayName} sign in here too.` : `Continue with ${displayName}`
