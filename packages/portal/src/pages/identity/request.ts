import {
  providerTypeSpecs,
  type Provider,
  type ProviderRequest,
  type ProviderType,
  type Setting,
  type SettingName,
} from './provider-types.ts'

type FormValues = Record<string, string>

/** Settings that do not depend on the type. */
export interface Rules {
  enabled: boolean
  defaultRole: Provider['defaultRole']
  roleMappings: Provider['roleMappings']
}

/** A provider or a request for one. */
type Known = { type: ProviderType } & { [Name in SettingName]?: ProviderRequest[Name] | undefined }

/**
 * Builds the whole request from the form and, for a change, the identifying settings. The API drops omitted settings,
 * except secrets.
 */
export function requestOf(type: ProviderType, values: FormValues, rules: Rules, before?: Provider): ProviderRequest {
  const { place, needs, more } = providerTypeSpecs[type]
  const typed = (setting: Setting) => [setting.name, typedIn(values, setting)] as const
  const placed = ({ name }: Setting) => [name, before && valueText(before, name)] as const
  const entries = [...place.map(before ? placed : typed), ...[...needs, ...more].map(typed)]
  const { scopes, ...texts } = Object.fromEntries(entries.filter(([, text]) => text !== undefined && text !== ''))
  const name = values['displayName']?.trim() ?? ''
  return {
    type,
    ...texts,
    ...(scopes !== undefined && { scopes: scopes.split(/\s+/) }),
    // ldap:// requires StartTLS.
    ...(type === 'LDAP' && { startTls: /^ldap:/i.test(texts['url'] ?? '') }),
    ...(name !== '' && { displayName: name }),
    ...rules,
  }
}

/** Secrets are not trimmed. */
const typedIn = (values: FormValues, { name, look }: Setting): string | undefined =>
  look === 'secret' ? values[name] : values[name]?.trim()

/** A setting as form text; '' if unset. The API never returns secrets. */
export function valueText(provider: Known, name: SettingName): string {
  const value = provider[name]
  return typeof value === 'object' ? value.join(' ') : (value ?? '')
}

/** The existing provider that the request would overwrite: same type and address. */
export const findDuplicate = (request: ProviderRequest, providers: readonly Provider[]): Provider | undefined =>
  providers.find((provider) => provider.type === request.type && placeOf(provider) === placeOf(request))

/** The normalised address of a provider. */
function placeOf(known: Known): string {
  const text = (name: SettingName): string => valueText(known, name)
  if (known.type === 'LDAP') return directory(text('url'))
  if (known.type === 'OIDC') return address(text('issuer'))
  if (known.type === 'OpenSourceIdp') return address(`${trimmed(text('baseUrl'))}/realms/${text('realm')}`)
  const host =
    text('authorityHost') || providerTypeSpecs.CloudDirectory.place.find(({ name }) => name === 'authorityHost')?.usual
  return address(`${trimmed(host ?? '')}/${text('tenantId')}`)
}

const trimmed = (text: string): string => text.replace(/\/+$/, '')
const address = (text: string): string => trimmed(URL.parse(text)?.href ?? text)

/** Adds the default port. */
function directory(url: string): string {
  const [, scheme = '', host = '', port] = /^(ldaps?):\/\/(.*?)(?::(\d+))?\/?$/i.exec(url) ?? []
  return `${scheme}://${host}:${port ?? (scheme.toLowerCase() === 'ldap' ? 389 : 636)}`.toLowerCase()
}
