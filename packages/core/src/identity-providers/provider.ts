import type { ProviderType } from '@platform/contract/identity'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, queryAll } from '../db/table.ts'
import { parseProvider, ProviderSecret, type ProviderRecord } from './record.ts'
import { isId } from '../id.ts'
import { readState } from '../platform/state.ts'
import { readSecret } from '../aws/secrets.ts'

export async function findProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const item = isId('idp', providerId) ? await get(keys.identityProvider(providerId)) : undefined
  return item && parseProvider(item)
}

export async function allProviders(): Promise<ProviderRecord[]> {
  return (await queryAll(keys.identityProviders())).map(parseProvider)
}

export async function enabledProviders(type?: ProviderType): Promise<ProviderRecord[]> {
  const providers = await allProviders()
  return providers.filter((provider) => provider.isEnabled && (type === undefined || provider.type === type))
}

/**
 * If the secret is missing, reads the record again, because a concurrent change may have replaced it. Returns an empty
 * object if the secret was lost.
 */
export async function secretOf({ id, secretName }: ProviderRecord): Promise<ProviderSecret> {
  const text = await readSecret(secretName)
  if (text !== undefined) return ProviderSecret.parse(JSON.parse(text))
  const currentProvider = await findProvider(id)
  if (currentProvider === undefined || currentProvider.secretName === secretName) return {}
  return ProviderSecret.parse(JSON.parse((await readSecret(currentProvider.secretName)) ?? '{}'))
}

const withoutTrailingSlashes = (address: string): string => address.replace(/\/+$/, '')

/** Returns an empty string for LDAP. */
export function issuerOf({ type, settings }: Pick<ProviderRecord, 'type' | 'settings'>): string {
  const { authorityHost = '', tenantId = '', baseUrl = '', realm = '', issuer = '' } = settings
  if (type === 'CloudDirectory') return `${withoutTrailingSlashes(authorityHost)}/${tenantId}/v2.0`
  if (type === 'OpenSourceIdp') return `${withoutTrailingSlashes(baseUrl)}/realms/${realm}`
  // A trailing slash is part of an issuer's identifier.
  return issuer
}

/** Returns a URL that has no trailing slash and is safe in headers. */
export const publicUrl = async (): Promise<string> =>
  withoutTrailingSlashes(new URL((await readState()).publicUrl ?? config.PLAT_API_URL).href)

export const redirectUri = (portalUrl: string, providerId: string): string =>
  `${portalUrl}/api/v1/auth/oidc/${providerId}/callback`

export const consentRedirectUri = (portalUrl: string): string =>
  `${portalUrl}/api/v1/platform/identity/consent-callback`
