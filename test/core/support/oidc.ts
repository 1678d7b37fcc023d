import { nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { replace, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import type { ProviderRecord } from '@platform/core/identity-providers/record'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { type HostileIssuer, signed } from '../../support/hostile-issuer.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { storeProvider } from './providers.ts'

export const portal = 'https://platform.example.com'
export const clientSecret = 'a secret that only the two of us know'
const origin = { address: '192.0.2.1' }

export async function preparePortal(): Promise<void> {
  await bootstrapPlatform()
  await transact([upsert(keys.platform(), { set: { publicUrl: portal, setupComplete: true } })])
}

export async function replaceProvider(record: ProviderRecord): Promise<ProviderRecord> {
  const { settings, roleMappings, ...rest } = record
  const texts = { settings: JSON.stringify(settings), roleMappings: JSON.stringify(roleMappings) }
  await transact([replace(keys.identityProvider(record.id), { ...rest, ...texts })])
  return record
}

export const newProvider = (
  issuer: string,
  { organisationId = newId('org'), ...overrides }: Partial<ProviderRecord> = {},
): Promise<ProviderRecord> => {
  const fields = { displayName: 'Acme directory', settings: { issuer, clientId: 'platform' }, ...overrides }
  return storeProvider(organisationId, fields, { clientSecret })
}

export async function startSignIn(provider: ProviderRecord, returnTo?: string) {
  const { location, browser = '' } = await Oidc.startSignIn(provider.id, { returnTo })
  const address = new URL(location)
  const { state = '', nonce = '' } = Object.fromEntries(address.searchParams)
  return { address, state, nonce, browser }
}
type StartedSignIn = Awaited<ReturnType<typeof startSignIn>>

export async function completeSignIn(
  providerId: string,
  callback: Parameters<typeof Oidc.completeSignIn>[1],
  browser: string,
): Promise<Record<string, string>> {
  const url = new URL(await Oidc.completeSignIn(providerId, callback, { browsers: [browser], origin }))
  if (`${url.origin}${url.pathname}` !== `${portal}/sign-in`) throw new Error(`Unexpected redirect to ${url.href}.`)
  return Object.fromEntries(url.searchParams)
}

export const validCallback = (issuer: HostileIssuer, { state }: Pick<StartedSignIn, 'state'>) => ({
  state,
  code: 'code',
  iss: issuer.url,
})

/** Signs in with an ID token whose claims, or whole text, the test changes. */
export async function signInWith(
  issuer: HostileIssuer,
  provider: ProviderRecord,
  change: (claims: Record<string, unknown>) => Record<string, unknown> = (claims) => claims,
  tokenOf: (claims: Record<string, unknown>) => Promise<string> | string | undefined = (claims) =>
    signed(claims, issuer.key),
): Promise<Record<string, string>> {
  const signIn = await startSignIn(provider)
  issuer.token = () => tokenOf(change(issuer.claims('platform', signIn.nonce, nowSeconds())))
  return completeSignIn(provider.id, validCallback(issuer, signIn), signIn.browser)
}
