import {
  type Provider,
  type ProviderRequest,
  type ProviderType,
  providerTypeSpecs,
  type Setting,
  type SettingName,
} from './provider-types.ts'

type FormValues = Record<string, string>

/** Settings that all provider types have. */
export interface Rules {
  enabled: boolean
  defaultRole: Provider['defaultRole']
  roleMappings: Provider['roleMappings']
}

// Fits both a stored provider and a request.
type ProviderSettings = { type: ProviderType } & { [Name in SettingName]?: ProviderRequest[Name] | undefined }

/**
 * Builds a complete request from the form and, for a change, the identifying settings. The API drops omitted settings
 * except secrets.
 */
export function requestOf(type: ProviderType, values: FormValues, rules: Rules, before?: Provider): ProviderRequest {
  const { identifying, required, optional } = providerTypeSpecs[type]
  const enteredEntryOf = (setting: Setting) => [setting.name, enteredText(values, setting)] as const
  const storedEntryOf = ({ name }: Setting) => [name, before && valueText(before, name)] as const
  const entries = [
    ...identifying.map(before ? storedEntryOf : enteredEntryOf),
    ...[...required, ...optional].map(enteredEntryOf),
  ]
  const { scopes, ...texts } = Object.fromEntries(entries.filter(([, text]) => text !== undefined && text !== ''))
  const name = values['displayName']?.trim() ?? ''
  return {
    type,
    ...texts,
    ...(scopes !== undefined && { scopes: scopes.split(/\s+/) }),
    // The platform accepts ldap:// only with StartTLS.
    ...(type === 'LDAP' && { startTls: /^ldap:/i.test(texts['url'] ?? '') }),
    ...(name !== '' && { displayName: name }),
    ...rules,
  }
}

// Spaces may be part of a secret, so secrets are not trimmed.
const enteredText = (values: FormValues, { name, format }: Setting): string | undefined =>
  format === 'secret' ? values[name] : values[name]?.trim()

/** Returns the form text of a setting, or '' if the setting is not set. The API never returns secrets. */
export function valueText(provider: ProviderSettings, name: SettingName): string {
  const value = provider[name]
  return typeof value === 'object' ? value.join(' ') : (value ?? '')
}

/** Returns the existing provider that the request would overwrite, which has the same type and address. */
export const findDuplicate = (request: ProviderRequest, providers: readonly Provider[]): Provider | undefined =>
  providers.find((provider) => provider.type === request.type && addressOf(provider) === addressOf(request))

// The address is normalised, because different texts can be the same address.
function addressOf(settings: ProviderSettings): string {
  const textOf = (name: SettingName): string => valueText(settings, name)
  if (settings.type === 'LDAP') return normaliseDirectoryUrl(textOf('url'))
  if (settings.type === 'OIDC') return normaliseUrl(textOf('issuer'))
  if (settings.type === 'OpenSourceIdp')
    return normaliseUrl(`${withoutTrailingSlash(textOf('baseUrl'))}/realms/${textOf('realm')}`)
  const host =
    textOf('authorityHost') ||
    providerTypeSpecs.CloudDirectory.identifying.find(({ name }) => name === 'authorityHost')?.defaultValue
  return normaliseUrl(`${withoutTrailingSlash(host ?? '')}/${textOf('tenantId')}`)
}

const withoutTrailingSlash = (text: string): string => text.replace(/\/+$/, '')
const normaliseUrl = (text: string): string => withoutTrailingSlash(URL.parse(text)?.href ?? text)

function normaliseDirectoryUrl(url: string): string {
  const [, scheme = '', host = '', port] = /^(ldaps?):\/\/(.*?)(?::(\d+))?\/?$/i.exec(url) ?? []
  return `${scheme}://${host}:${port ?? (scheme.toLowerCase() === 'ldap' ? 389 : 636)}`.toLowerCase()
}
