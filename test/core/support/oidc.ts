import { now, nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove, replace, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import * as Oidc from '@platform/core/identity-providers/oidc/oidc'
import { writeSecret } from '@platform/core/aws/secrets'
import { type HostileIssuer, signed } from '../../support/hostile-issuer.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'

/** Providers as their operators have configured them, and what sign-ins say. */

export const portal = 'https://platform.example.com'
export const clientSecret = 'a secret that only the two of us know'
const origin = { address: '192.0.2.1' }

/** The portal has an address, and tokens can be signed. */
export async function preparePortal(): Promise<void> {
  await bootstrapPlatform()
  await transact([upsert(keys.platform(), { set: { publicUrl: portal, setupComplete: true } })])
}

/** Stores a provider as it is said; a stored one is replaced. */
export async function replaceProvider(row: ProviderRecord): Promise<ProviderRecord> {
  const { settings, roleMappings, ...rest } = row
  const texts = { settings: JSON.stringify(settings), roleMappings: JSON.stringify(roleMappings) }
  await transact([replace(keys.identityProvider(row.id), { ...rest, ...texts })])
  return row
}

export const removeProvider = ({ id }: ProviderRecord) => transact([remove(keys.identityProvider(id))])

export async function newProvider(issuer: string, given: Partial<ProviderRecord> = {}): Promise<ProviderRecord> {
  const id = newId('idp')
  const secretName = `${config.PLAT_SECRET_IDENTITY_PREFIX}/${id}`
  await writeSecret(secretName, JSON.stringify({ clientSecret }))
  const times = { createdAtMs: now(), updatedAtMs: now(), revision: 1 }
  return replaceProvider({
    id,
    organisationId: newId('org'),
    type: 'OIDC',
    displayName: 'Acme directory',
    isEnabled: true,
    settings: { issuer, clientId: 'platform' },
    roleMappings: [],
    defaultRole: 'Viewer',
    secretName,
    ...times,
    ...given,
  })
}

/** A sign-in that has left for the issuer: what its address says, and the secret of its browser. */
export async function startSignIn(provider: ProviderRecord, returnTo?: string) {
  const { location, browser = '' } = await Oidc.startSignIn(provider.id, { returnTo })
  const address = new URL(location)
  const { state = '', nonce = '' } = Object.fromEntries(address.searchParams)
  return { address, state, nonce, browser }
}
export type StartedSignIn = Awaited<ReturnType<typeof startSignIn>>

/** The issuer sends the browser back: what the portal is told. */
export async function completeSignIn(
  providerId: string,
  answer: Parameters<typeof Oidc.completeSignIn>[1],
  browser: string,
): Promise<Record<string, string>> {
  const url = new URL(await Oidc.completeSignIn(providerId, answer, { browser, origin }))
  if (`${url.origin}${url.pathname}` !== `${portal}/sign-in`) throw new Error(`It leads to ${url.href}.`)
  return Object.fromEntries(url.searchParams)
}

/** What a browser sends that was properly sent back. */
export const validCallback = (issuer: HostileIssuer, { state }: Pick<StartedSignIn, 'state'>) => ({
  state,
  code: 'code',
  iss: issuer.url,
})

/** A whole way through an issuer that says what it is told to: claims may be changed, or the whole token. */
export async function signInWith(
  issuer: HostileIssuer,
  provider: ProviderRecord,
  change: (claims: Record<string, unknown>) => Record<string, unknown> = (claims) => claims,
  tokenOf: (claims: Record<string, unknown>) => Promise<string> | string = (claims) => signed(claims, issuer.key),
): Promise<Record<string, string>> {
  const signIn = await startSignIn(provider)
  issuer.token = () => tokenOf(change(issuer.claims('platform', signIn.nonce, nowSeconds())))
  return completeSignIn(provider.id, validCallback(issuer, signIn), signIn.browser)
}
