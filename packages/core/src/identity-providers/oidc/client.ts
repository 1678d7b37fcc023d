import * as openid from 'openid-client'
import { systemSeconds, now, nowSeconds } from '../../clock.ts'
import { issuerOf } from '../provider.ts'
import { type ProviderRecord } from '../record.ts'
import { checkProviderUrl, guardedFetch, allowsPlainHttp } from './fetch.ts'
import { BoundedCache } from '../../lib/bounded-cache.ts'

/** A process's cache of OpenID providers: their metadata and keys, for a few minutes. */

const knownMs = 5 * 60_000
/** An unavailable provider is not requested on every click. */
const failedMs = 5000
/** An unknown key id reloads the keys, at most this often. */
const keysMs = 10_000
/** The library reloads keys older than a minute. */
const oldSeconds = 61

/** The metadata of a provider. */
export interface CachedIssuer {
  metadata: openid.ServerMetadata
  keys?: openid.ExportedJWKSCache['jwks']
  keysReadAtMs: number
}

const recent = new BoundedCache<{ known: Promise<CachedIssuer>; untilMs: number }>(200)

/** The cached provider, per revision, reloaded every few minutes by one request at a time. */
export function cachedIssuer(provider: ProviderRecord): Promise<CachedIssuer> {
  const name = `${provider.id} ${provider.revision}`
  const held = recent.get(name)
  if (held !== undefined && held.untilMs > now()) return held.known
  const fresh = { known: discover(provider), untilMs: now() + knownMs }
  fresh.known.catch(() => {
    fresh.untilMs = now() + failedMs
  })
  recent.set(name, fresh)
  return fresh.known
}

/** Runs discovery. Throws if the provider does not respond or has another issuer name. */
export async function discover(provider: ProviderRecord): Promise<CachedIssuer> {
  const issuer = checkProviderUrl(issuerOf(provider))
  const options = { [openid.customFetch]: guardedFetch, execute: leniencyOf(issuer) }
  const found = await openid.discovery(issuer, clientIdOf(provider), undefined, openid.None(), options)
  const metadata = found.serverMetadata()
  // The library exempts some hosts from this check, which would let any tenant sign in.
  if (new URL(metadata.issuer).href !== issuer.href) throw new IssuerMismatch()
  // Only this address is sent to browsers; the others are checked when called.
  if (metadata.authorization_endpoint !== undefined) checkProviderUrl(metadata.authorization_endpoint)
  return { metadata, keysReadAtMs: 0 }
}

/** The metadata have another issuer name. */
export class IssuerMismatch extends Error {
  override readonly name = 'IssuerMismatch'
}

const clientIdOf = ({ settings }: ProviderRecord): string => settings.clientId ?? ''

// oxlint-disable-next-line typescript/no-deprecated -- marked so to stand out; the operator has named this host and port
const leniencyOf = (issuer: URL) => (allowsPlainHttp(issuer) ? [openid.allowInsecureRequests] : [])

/** The OAuth client of a provider, for one exchange: tokens are verified with the provider's keys. */
export function clientOf(provider: ProviderRecord, { metadata, keys, keysReadAtMs }: CachedIssuer, secret = '') {
  const clock = { [openid.clockSkew]: nowSeconds() - systemSeconds(), [openid.clockTolerance]: 30 }
  const client = new openid.Configuration(metadata, clientIdOf(provider), clock, proofOf(metadata, secret))
  client[openid.customFetch] = guardedFetch
  openid.enableNonRepudiationChecks(client)
  for (const allow of leniencyOf(new URL(metadata.issuer))) allow(client)
  const isFresh = keysReadAtMs + keysMs > now()
  if (keys) openid.setJwksCache(client, { jwks: keys, uat: systemSeconds() - (isFresh ? 0 : oldSeconds) })
  return client
}

/** In the body if the provider supports it, else by HTTP Basic, which all must support. */
const proofOf = ({ token_endpoint_auth_methods_supported: methods }: openid.ServerMetadata, secret: string) => {
  if (secret === '') return openid.None()
  const isPosted = Array.isArray(methods) && methods.includes('client_secret_post')
  return isPosted ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret)
}

/** Runs the work with the provider's client, and caches the keys that it loaded. */
export async function withClient<Result>(
  provider: ProviderRecord,
  known: CachedIssuer,
  secret: string,
  work: (client: openid.Configuration) => Promise<Result>,
): Promise<Result> {
  const client = clientOf(provider, known, secret)
  const before = openid.getJwksCache(client)?.uat
  try {
    return await work(client)
  } finally {
    const after = openid.getJwksCache(client)
    if (after?.uat !== before) Object.assign(known, { keys: after?.jwks ?? known.keys, keysReadAtMs: now() })
  }
}
