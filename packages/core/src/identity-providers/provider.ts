import { type ProviderType } from '@platform/contract/identity'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { get, queryAll } from '../db/table.ts'
import { parseProvider, ProviderSecret, type ProviderRecord } from './record.ts'
import { isId } from '../id.ts'
import { readState } from '../platform/state.ts'
import { readSecret } from '../aws/secrets.ts'

/** Identity providers as sign-in needs them (D41). What their operators do with them: `admin.ts`. */

/** A provider, whether or not it is enabled; undefined where there is none. One call. */
export async function findProvider(providerId: string): Promise<ProviderRecord | undefined> {
  const item = isId('idp', providerId) ? await get(keys.identityProvider(providerId)) : undefined
  return item && parseProvider(item)
}

/** All providers of the platform, in the order of their ids. One call per 1 MB, which nearly always is one. */
export async function allProviders(): Promise<ProviderRecord[]> {
  return (await queryAll(keys.identityProviders())).map(parseProvider)
}

/** The providers, or those of one type, that people can sign in with just now. As many calls as `allProviders`. */
export async function enabledProviders(type?: ProviderType): Promise<ProviderRecord[]> {
  const providers = await allProviders()
  return providers.filter((provider) => provider.isEnabled && (type === undefined || provider.type === type))
}

/**
 * What the platform keeps secret of a provider; empty where it is lost. One call to Secrets Manager. Where the secret was
 * changed since the row was read, the row is read once more.
 */
export async function secretOf({ id, secretName }: ProviderRecord): Promise<ProviderSecret> {
  const text = await readSecret(secretName)
  if (text !== undefined) return ProviderSecret.parse(JSON.parse(text))
  const newer = await findProvider(id)
  if (newer === undefined || newer.secretName === secretName) return {}
  return ProviderSecret.parse(JSON.parse((await readSecret(newer.secretName)) ?? '{}'))
}

const withoutEndingSlashes = (address: string): string => address.replace(/\/+$/, '')

/** The issuer of a provider that speaks OpenID Connect; LDAP has none, and answers ''. */
export function issuerOf({ type, settings }: Pick<ProviderRecord, 'type' | 'settings'>): string {
  const { authorityHost = '', tenantId = '', baseUrl = '', realm = '', issuer = '' } = settings
  if (type === 'CloudDirectory') return `${withoutEndingSlashes(authorityHost)}/${tenantId}/v2.0`
  if (type === 'OpenSourceIdp') return `${withoutEndingSlashes(baseUrl)}/realms/${realm}`
  // As it was given: whether an issuer ends with a slash is part of its name.
  return issuer
}

/** Where people reach the portal, as setup was told; without a slash at its end, and fit for a header. One call. */
export const publicUrl = async (): Promise<string> =>
  withoutEndingSlashes(new URL((await readState()).publicUrl ?? config.PLAT_API_URL).href)

/** Where a provider sends people back to who have signed in there. */
export const redirectUri = (portal: string, providerId: string): string =>
  `${portal}/api/v1/auth/oidc/${providerId}/callback`

/** Where a provider sends its operator back to who has given or denied consent. */
export const consentRedirectUri = (portal: string): string => `${portal}/api/v1/platform/identity/consent-callback`
