import { type ProviderType } from '@platform/contract/identity'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, queryAll } from '../db/table.ts'
import { parseProvider, ProviderSecret, type ProviderRecord } from './record.ts'
import { isId } from '../id.ts'
import { readState } from '../platform/state.ts'
import { readSecret } from '../aws/secrets.ts'

/** A provider, enabled or not; undefined if it does not exist. One call. */
export async function findProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const item = isId('idp', providerId) ? await get(keys.identityProvider(providerId)) : undefined
  return item && parseProvider(item)
}

/** All providers of the platform, ordered by id. One call per 1 MB, nearly always one. */
export async function allProviders(): Promise<ProviderRecord[]> {
  return (await queryAll(keys.identityProviders())).map(parseProvider)
}

/** The enabled providers, optionally of one type. As many calls as `allProviders`. */
export async function enabledProviders(type?: ProviderType): Promise<ProviderRecord[]> {
  const providers = await allProviders()
  return providers.filter((provider) => provider.isEnabled && (type === undefined || provider.type === type))
}

/**
 * The provider's secret; empty if it was lost. One call to Secrets Manager. Reads the record again if the secret was
 * changed since.
 */
export async function secretOf({ id, secretName }: ProviderRecord): Promise<ProviderSecret> {
  const text = await readSecret(secretName)
  if (text !== undefined) return ProviderSecret.parse(JSON.parse(text))
  const current = await findProvider(id)
  if (current === undefined || current.secretName === secretName) return {}
  return ProviderSecret.parse(JSON.parse((await readSecret(current.secretName)) ?? '{}'))
}

const withoutTrailingSlashes = (address: string): string => address.replace(/\/+$/, '')

/** The issuer of an OpenID Connect provider; '' for LDAP. */
export function issuerOf({ type, settings }: Pick<ProviderRecord, 'type' | 'settings'>): string {
  const { authorityHost = '', tenantId = '', baseUrl = '', realm = '', issuer = '' } = settings
  if (type === 'CloudDirectory') return `${withoutTrailingSlashes(authorityHost)}/${tenantId}/v2.0`
  if (type === 'OpenSourceIdp') return `${withoutTrailingSlashes(baseUrl)}/realms/${realm}`
  // A trailing slash is part of an issuer's identifier.
  return issuer
}

/** The portal's public URL from setup, without a trailing slash and safe for headers. One call. */
export const publicUrl = async (): Promise<string> =>
  withoutTrailingSlashes(new URL((await readState()).publicUrl ?? config.PLAT_API_URL).href)

export const redirectUri = (portal: string, providerId: string): string =>
  `${portal}/api/v1/auth/oidc/${providerId}/callback`

export const consentRedirectUri = (portal: string): string => `${portal}/api/v1/platform/identity/consent-callback`
