import type { FormValues } from '../../ui/form.tsx'
import {
  providerTypeSpecs,
  type Provider,
  type ProviderRequest,
  type ProviderType,
  type Setting,
  type SettingName,
} from './provider-types.ts'

/** What one may say of a provider beside the settings of its type. */
export interface Rules {
  enabled: boolean
  defaultRole: Provider['defaultRole']
  roleMappings: Provider['roleMappings']
}

/** What is known of a provider, or asked for: its type and settings. */
type Known = { type: ProviderType } & { [Name in SettingName]?: ProviderRequest[Name] | undefined }

/**
 * The whole request for a provider, of what a form holds and of the place of the one that is changed. All is sent: what a
 * request leaves out is not kept, but for secrets.
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
    // What begins in clear text has to go on in TLS.
    ...(type === 'LDAP' && { startTls: /^ldap:/i.test(texts['url'] ?? '') }),
    ...(name !== '' && { displayName: name }),
    ...rules,
  }
}

/** Of a secret every character counts. */
const typedIn = (values: FormValues, { name, look }: Setting): string | undefined =>
  look === 'secret' ? values[name] : values[name]?.trim()

/** A setting of a provider as a form holds it; '' where there is none. Secrets are never known. */
export function valueText(provider: Known, name: SettingName): string {
  const value = provider[name]
  return typeof value === 'object' ? value.join(' ') : (value ?? '')
}

/** The one of the list that a request would change: it is of the same type and place. */
export const parseForm = (request: ProviderRequest, providers: readonly Provider[]): Provider | undefined =>
  providers.find((provider) => provider.type === request.type && placeOf(provider) === placeOf(request))

/** Where a provider is, spelled in one way. */
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

/** `ldaps://Directory.example.com` is at the port that such directories are at. */
function directory(url: string): string {
  const [, scheme = '', host = '', port] = /^(ldaps?):\/\/(.*?)(?::(\d+))?\/?$/i.exec(url) ?? []
  return `${scheme}://${host}:${port ?? (scheme.toLowerCase() === 'ldap' ? 389 : 636)}`.toLowerCase()
}
