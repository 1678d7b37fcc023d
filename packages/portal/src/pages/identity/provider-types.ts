import type { Schemas } from '../../api/client.ts'

/** What each type of provider needs and may have (D41), and how it is asked for. */

export type Provider = Schemas['IdentityProvider']
export type ProviderRequest = Schemas['IdentityProviderRequest']
export type ProviderType = Provider['type']

/** A member of the request that is a line of text, or is written as one. */
export type SettingName = Exclude<
  keyof ProviderRequest,
  'type' | 'displayName' | 'enabled' | 'roleMappings' | 'defaultRole' | 'startTls'
>

/** A secret is never shown again; a list is words with spaces between them; a certificate has several lines. */
type Look = 'text' | 'url' | 'secret' | 'list' | 'certificate'

export interface Setting {
  name: SettingName
  label: string
  hint?: string
  /** What the platform takes where nothing is said. */
  usual?: string
  example?: string
  look?: Look
}

export interface ProviderTypeSpec {
  label: string
  /** By these a provider is known: of another place it is another provider. */
  place: readonly Setting[]
  needs: readonly Setting[]
  more: readonly Setting[]
}

const client = { name: 'clientId', label: 'Client id' } as const
const secret = { name: 'clientSecret', label: 'Client secret', look: 'secret' } as const
const claims = [
  { name: 'scopes', label: 'Scopes', usual: 'openid profile email', look: 'list' },
  { name: 'usernameClaim', label: 'Claim of the user name', usual: 'preferred_username' },
  { name: 'emailClaim', label: 'Claim of the e-mail', usual: 'email' },
  { name: 'groupsClaim', label: 'Claim of the groups', usual: 'groups' },
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
        hint: 'Spelled as the provider spells it.',
      },
    ],
    needs: [client, secret],
    more: claims,
  },
  CloudDirectory: {
    label: 'Cloud directory (Microsoft Entra ID)',
    place: [
      { name: 'tenantId', label: 'Tenant', hint: 'Its id, or one of its domains.' },
      {
        name: 'authorityHost',
        label: 'Authority',
        look: 'url',
        usual: 'https://login.microsoftonline.com',
        hint: 'Another one in a national cloud.',
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
        hint: 'ldaps://, or ldap:// which then goes on in TLS (StartTLS).',
      },
    ],
    needs: [
      { name: 'bindDn', label: 'Service account (DN)', example: 'cn=platform,dc=example,dc=com' },
      { name: 'bindPassword', label: 'Password of the service account', look: 'secret' },
      { name: 'userSearchBase', label: 'Where people are (DN)', example: 'ou=people,dc=example,dc=com' },
    ],
    more: [
      {
        name: 'groupSearchBase',
        label: 'Where groups are (DN)',
        hint: 'Empty: what the directory itself says of a person (memberOf).',
      },
      { name: 'groupMemberAttribute', label: 'Attribute of the members of a group', usual: 'member' },
      { name: 'userLoginAttribute', label: 'Attribute of the user name', usual: 'uid' },
      {
        name: 'caCertificate',
        label: 'Certificates to trust',
        look: 'certificate',
        hint: 'PEM. Where the directory’s own authority is none of the usual ones.',
      },
    ],
  },
}

/** In the order in which they are offered. */
export const providerTypes = ['OIDC', 'CloudDirectory', 'OpenSourceIdp', 'LDAP'] as const satisfies ProviderType[]

/** Whether a type cannot do without a setting: what has a usual value can. */
export const isRequiredSetting = ({ place, needs }: ProviderTypeSpec, setting: Setting): boolean =>
  setting.usual === undefined && (place.includes(setting) || needs.includes(setting))

/** What the sign-in page says of a provider. */
export const signInLabelOf = (type: ProviderType, displayName: string): string =>
  type === 'LDAP' ? `Accounts of ${displayName} sign in here too.` : `Continue with ${displayName}`
