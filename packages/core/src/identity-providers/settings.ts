import { X509Certificate } from 'node:crypto'
import { type ErrorDetail } from '@platform/contract/common'
import { type ProviderRequest, type ProviderType } from '@platform/contract/identity'
import { ldapAddress, addressError, httpAddressErrors } from './url.ts'
import { issuerOf } from './provider.ts'
import { type ProviderSecret, type ProviderSettings } from './record.ts'

/** What each type of provider needs and may have (D41), and how a request becomes settings. */

type Setting = keyof ProviderSettings

interface Kind {
  needs: readonly Setting[]
  /** Without which it is not known which provider is meant. */
  place: readonly Setting[]
  secret: keyof ProviderSecret
  /** What else it may have, and what that is where nobody says. */
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

/** What a request says of a provider. */
export interface Configuration {
  settings: ProviderSettings
  /** Which provider of its type it is; undefined where the request does not tell. */
  place: string | undefined
  /** Which secret the type needs. */
  secretField: keyof ProviderSecret
  /** The secret, where the request brings it. */
  secret: ProviderSecret | undefined
  problems: ErrorDetail[]
}

/** Reads a request, with all that is wrong with it. Throws `url_not_allowed`. No call. */
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

/** What the type does not know is left out. */
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
  addressError(field, 'required', 'is needed for this type of provider')

const missing = ({ needs }: Kind, settings: ProviderSettings): ErrorDetail[] =>
  needs.filter((name) => settings[name] === undefined).map(required)

/** Directories of Entra that mean everybody's tenants: whoever has any account there would get in. */
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
    return [addressError('url', 'invalid_url', 'must be ldap(s)://host:port and no more')]
  if (url.startsWith('ldaps:')) {
    return isStartTls
      ? [addressError('startTls', 'not_applicable', 'is for ldap: alone; ldaps: is encrypted anyway')]
      : []
  }
  if (isStartTls) return []
  return [addressError('startTls', 'tls_required', 'must be true for ldap:, or passwords would travel in clear text')]
}

const certificates = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Certificates and nothing else: a key that somebody has pasted by mistake would be shown to every administrator. */
function certificateProblems({ caCertificate: text }: ProviderSettings): ErrorDetail[] {
  if (text === undefined) return []
  const blocks = text.match(certificates) ?? []
  const isPem = blocks.length > 0 && text.replaceAll(certificates, '').trim() === '' && blocks.every(isCertificate)
  return isPem
    ? []
    : [addressError('caCertificate', 'invalid_certificate', 'must be certificates in PEM and nothing else')]
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

/** Where a provider is: one of another issuer, or another directory, is another provider, and gets no secret of this one. */
const placeOf = (type: ProviderType, settings: ProviderSettings): string =>
  settings.url ?? new URL(issuerOf({ type, settings })).href.replace(/\/+$/, '')

/** What people choose at sign-in, where nobody has said it. */
export function nameFrom(type: ProviderType, settings: ProviderSettings): string {
  const { tenantId, realm } = settings
  const { hostname } = new URL(settings.url ?? issuerOf({ type, settings }))
  return (tenantId ?? (realm === undefined ? hostname : `${realm} (${hostname})`)).slice(0, 100)
}
