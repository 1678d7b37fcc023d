import { X509Certificate } from 'node:crypto'
import { type ErrorDetail } from '@platform/contract/common'
import { type ProviderRequest, type ProviderType } from '@platform/contract/identity'
import { ldapAddress, addressError, httpAddressErrors } from './url.ts'
import { issuerOf } from './provider.ts'
import { type ProviderSecret, type ProviderSettings } from './record.ts'

/** Required and optional settings per provider type, and their validation. */

type Setting = keyof ProviderSettings

interface Kind {
  needs: readonly Setting[]
  /** The settings that identify the provider. */
  place: readonly Setting[]
  secret: keyof ProviderSecret
  /** Optional settings with their defaults. */
  defaults: { [Name in Setting]?: ProviderSettings[Name] | undefined }
}

const claims: Kind['defaults'] = {
  scopes: ['openid', 'profile', 'email'],
  usernameClaim: 'preferred_username',
  emailClaim: 'email',
  groupsClaim: 'groups',
}

const kinds: Record<ProviderType, Kind> = {
  CloudDirectory: {
    needs: ['tenantId', 'clientId'],
    place: ['tenantId'],
    secret: 'clientSecret',
    defaults: { authorityHost: 'https://login.microsoftonline.com', ...claims },
  },
  OIDC: { needs: ['issuer', 'clientId'], place: ['issuer'], secret: 'clientSecret', defaults: claims },
  OpenSourceIdp: {
    needs: ['baseUrl', 'realm', 'clientId'],
    place: ['baseUrl', 'realm'],
    secret: 'clientSecret',
    defaults: claims,
  },
  LDAP: {
    needs: ['url', 'bindDn', 'userSearchBase'],
    place: ['url'],
    secret: 'bindPassword',
    defaults: {
      startTls: false,
      caCertificate: undefined,
      userLoginAttribute: 'uid',
      groupSearchBase: undefined,
      groupMemberAttribute: 'member',
    },
  },
}

/** The parsed request. */
export interface Configuration {
  settings: ProviderSettings
  /** The provider's location, which identifies it within its type; undefined if missing. */
  place: string | undefined
  /** The secret that the type needs. */
  secretField: keyof ProviderSecret
  /** The secret, if the request includes it. */
  secret: ProviderSecret | undefined
  problems: ErrorDetail[]
}

/** Parses a request and collects all problems. Throws `url_not_allowed`. No call. */
export function configurationOf(request: ProviderRequest): Configuration {
  const kind = kinds[request.type]
  const settings = settingsOf(kind, request)
  const problems = [...missing(kind, settings), ...checks[request.type](settings), ...certificateProblems(settings)]
  const isPlaced = kind.place.every((name) => settings[name] !== undefined)
  const given = request[kind.secret]
  return {
    settings,
    place: isPlaced ? placeOf(request.type, settings) : undefined,
    secretField: kind.secret,
    secret: given === undefined ? undefined : { [kind.secret]: given },
    problems,
  }
}

/** Settings of other types are dropped. */
function settingsOf({ needs, defaults }: Kind, request: ProviderRequest): ProviderSettings {
  const known = new Set<string>([...needs, ...Object.keys(defaults)])
  const given = Object.entries({ ...defaults, ...request }).filter(
    ([name, value]) => known.has(name) && value !== undefined,
  )
  const settings: ProviderSettings = Object.fromEntries(given)
  return {
    ...settings,
    ...(settings.scopes && { scopes: [...new Set(['openid', ...settings.scopes])] }),
    ...(settings.url !== undefined && { url: ldapAddress(settings.url) ?? settings.url }),
    ...(settings.caCertificate !== undefined && { caCertificate: settings.caCertificate.trim() }),
  }
}

export const required = (field: string): ErrorDetail =>
  addressError(field, 'required', 'is required for this type of provider')

const missing = ({ needs }: Kind, settings: ProviderSettings): ErrorDetail[] =>
  needs.filter((name) => settings[name] === undefined).map(required)

/** Entra tenants that accept any account. */
const everybody = /^(common|organizations|consumers)$/i

const checks: Record<ProviderType, (settings: ProviderSettings) => ErrorDetail[]> = {
  CloudDirectory: ({ tenantId = '', authorityHost = '' }) => [
    ...(everybody.test(tenantId) ? [addressError('tenantId', 'not_one_tenant', 'must name one tenant')] : []),
    ...httpAddressErrors('authorityHost', authorityHost),
  ],
  OIDC: ({ issuer }) => (issuer === undefined ? [] : httpAddressErrors('issuer', issuer)),
  OpenSourceIdp: ({ baseUrl }) => (baseUrl === undefined ? [] : httpAddressErrors('baseUrl', baseUrl)),
  LDAP: ({ url, startTls }) => (url === undefined ? [] : ldapProblems(url, startTls === true)),
}

function ldapProblems(url: string, isStartTls: boolean): ErrorDetail[] {
  if (ldapAddress(url) === undefined)
    return [addressError('url', 'invalid_url', 'must be ldap(s)://host:port without a path')]
  if (url.startsWith('ldaps:')) {
    return isStartTls
      ? [addressError('startTls', 'not_applicable', 'applies to ldap: only; ldaps: is always encrypted')]
      : []
  }
  if (isStartTls) return []
  return [addressError('startTls', 'tls_required', 'must be true for ldap:, to encrypt passwords')]
}

const certificates = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Certificates only: a private key pasted by mistake would be visible to all administrators. */
function certificateProblems({ caCertificate: text }: ProviderSettings): ErrorDetail[] {
  if (text === undefined) return []
  const blocks = text.match(certificates) ?? []
  const isPem = blocks.length > 0 && text.replaceAll(certificates, '').trim() === '' && blocks.every(isCertificate)
  return isPem
    ? []
    : [addressError('caCertificate', 'invalid_certificate', 'must contain only certificates in PEM format')]
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

/** The location of a provider: another issuer or directory is another provider and never receives this one's secret. */
const placeOf = (type: ProviderType, settings: ProviderSettings): string =>
  settings.url ?? new URL(issuerOf({ type, settings })).href.replace(/\/+$/, '')

/** The default display name at sign-in. */
export function nameFrom(type: ProviderType, settings: ProviderSettings): string {
  const { tenantId, realm } = settings
  const { hostname } = new URL(settings.url ?? issuerOf({ type, settings }))
  return (tenantId ?? (realm === undefined ? hostname : `${realm} (${hostname})`)).slice(0, 100)
}
