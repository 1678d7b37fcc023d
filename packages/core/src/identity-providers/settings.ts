import { X509Certificate } from 'node:crypto'
import type { ErrorDetail } from '@platform/contract/common'
import type { ProviderRequest, ProviderType } from '@platform/contract/identity'
import { ldapAddress, fieldError, httpAddressErrors } from './url.ts'
import { issuerOf } from './provider.ts'
import type { ProviderSecret, ProviderSettings } from './record.ts'

type SettingName = keyof ProviderSettings

interface TypeSpec {
  mandatory: readonly SettingName[]
  /** Settings that identify the provider. */
  location: readonly SettingName[]
  secret: keyof ProviderSecret
  defaults: { [Name in SettingName]?: ProviderSettings[Name] | undefined }
}

const claimDefaults: TypeSpec['defaults'] = {
  // There is no fixed default, because `defaultScopes` depends on the provider's metadata.
  scopes: undefined,
  usernameClaim: 'preferred_username',
  emailClaim: 'email',
  groupsClaim: 'groups',
}

const typeSpecs: Record<ProviderType, TypeSpec> = {
  CloudDirectory: {
    mandatory: ['tenantId', 'clientId'],
    location: ['tenantId'],
    secret: 'clientSecret',
    defaults: { authorityHost: 'https://login.microsoftonline.com', ...claimDefaults },
  },
  OIDC: { mandatory: ['issuer', 'clientId'], location: ['issuer'], secret: 'clientSecret', defaults: claimDefaults },
  OpenSourceIdp: {
    mandatory: ['baseUrl', 'realm', 'clientId'],
    location: ['baseUrl', 'realm'],
    secret: 'clientSecret',
    defaults: claimDefaults,
  },
  LDAP: {
    mandatory: ['url', 'bindDn', 'userSearchBase'],
    location: ['url'],
    secret: 'bindPassword',
    defaults: {
      startTls: false,
      caCertificate: undefined,
      userLoginAttribute: 'uid',
      groupSearchBase: undefined,
      groupMemberAttribute: 'member',
      nestedGroups: 'none',
    },
  },
}

export interface Configuration {
  settings: ProviderSettings
  /** Identifies the provider within its type. Undefined if one of the settings that form the location is missing. */
  location: string | undefined
  /** The field of the request that contains the secret. */
  secretField: keyof ProviderSecret
  secret: ProviderSecret | undefined
  errors: ErrorDetail[]
}

/** Collects all validation errors. Throws `url_not_allowed` if the platform may not call an address. */
export function parseConfiguration(request: ProviderRequest): Configuration {
  const spec = typeSpecs[request.type]
  const settings = settingsOf(spec, request)
  const errors = [
    ...missingErrors(spec, settings),
    ...validators[request.type](settings),
    ...certificateErrors(settings),
  ]
  const hasLocation = spec.location.every((name) => settings[name] !== undefined)
  const secret = request[spec.secret]
  return {
    settings,
    location: hasLocation ? locationOf(request.type, settings) : undefined,
    secretField: spec.secret,
    secret: secret === undefined ? undefined : { [spec.secret]: secret },
    errors,
  }
}

function settingsOf({ mandatory, defaults }: TypeSpec, request: ProviderRequest): ProviderSettings {
  const settingNames = new Set<string>([...mandatory, ...Object.keys(defaults)])
  const entries = Object.entries({ ...defaults, ...request }).filter(
    ([name, value]) => settingNames.has(name) && value !== undefined,
  )
  const settings: ProviderSettings = Object.fromEntries(entries)
  return {
    ...settings,
    ...(settings.scopes && { scopes: [...new Set(['openid', ...settings.scopes])] }),
    ...(settings.url !== undefined && { url: ldapAddress(settings.url) ?? settings.url }),
    ...(settings.caCertificate !== undefined && { caCertificate: settings.caCertificate.trim() }),
  }
}

export const requiredError = (field: string): ErrorDetail =>
  fieldError(field, 'required', 'is required for this type of provider')

const missingErrors = ({ mandatory }: TypeSpec, settings: ProviderSettings): ErrorDetail[] =>
  mandatory.filter((name) => settings[name] === undefined).map(requiredError)

/** With one of these ids instead of a tenant's id, Entra accepts accounts of any tenant, or personal accounts. */
const multiTenantId = /^(common|organizations|consumers)$/i

const validators: Record<ProviderType, (settings: ProviderSettings) => ErrorDetail[]> = {
  CloudDirectory: ({ tenantId = '', authorityHost = '' }) => [
    ...(multiTenantId.test(tenantId) ? [fieldError('tenantId', 'not_one_tenant', 'must name one tenant')] : []),
    ...httpAddressErrors('authorityHost', authorityHost),
  ],
  OIDC: ({ issuer }) => (issuer === undefined ? [] : httpAddressErrors('issuer', issuer)),
  OpenSourceIdp: ({ baseUrl }) => (baseUrl === undefined ? [] : httpAddressErrors('baseUrl', baseUrl)),
  LDAP: ({ url, startTls, nestedGroups, groupSearchBase }) => [
    ...(url === undefined ? [] : ldapErrors(url, startTls === true)),
    ...(nestedGroups === 'recursive' && groupSearchBase === undefined ? [requiredError('groupSearchBase')] : []),
  ],
}

function ldapErrors(url: string, isStartTls: boolean): ErrorDetail[] {
  if (ldapAddress(url) === undefined)
    return [fieldError('url', 'invalid_url', 'must be ldap(s)://host:port without a path')]
  if (url.startsWith('ldaps:')) {
    return isStartTls
      ? [fieldError('startTls', 'not_applicable', 'applies to ldap: only; ldaps: is always encrypted')]
      : []
  }
  if (isStartTls) return []
  return [fieldError('startTls', 'tls_required', 'must be true for ldap:, to encrypt passwords')]
}

const pemPattern = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Rejects anything but certificates: a private key pasted by mistake would be visible to all administrators. */
function certificateErrors({ caCertificate: text }: ProviderSettings): ErrorDetail[] {
  if (text === undefined) return []
  const blocks = text.match(pemPattern) ?? []
  const isPem = blocks.length > 0 && text.replaceAll(pemPattern, '').trim() === '' && blocks.every(isCertificate)
  return isPem
    ? []
    : [fieldError('caCertificate', 'invalid_certificate', 'must contain only certificates in PEM format')]
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

/** A different issuer or directory is a different provider, so the stored secret is never sent to it. */
const locationOf = (type: ProviderType, settings: ProviderSettings): string =>
  settings.url ?? new URL(issuerOf({ type, settings })).href.replace(/\/+$/, '')

export function defaultDisplayName(type: ProviderType, settings: ProviderSettings): string {
  const { tenantId, realm } = settings
  const { hostname } = new URL(settings.url ?? issuerOf({ type, settings }))
  return (tenantId ?? (realm === undefined ? hostname : `${realm} (${hostname})`)).slice(0, 100)
}
