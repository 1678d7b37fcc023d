import * as openid from 'openid-client'
import { systemSeconds, now, nowSeconds } from '../../clock.ts'
import { issuerOf } from '../provider.ts'
import { type ProviderRecord } from '../record.ts'
import { checkProviderUrl, guardedFetch, allowsPlainHttp } from './fetch.ts'
import { BoundedCache } from '../../lib/bounded-cache.ts'

/** OpenID providers as a process knows them: what they say of themselves, and their keys, for a few minutes. */

const knownMs = 5 * 60_000
/** A provider that does not answer is not asked at every click. */
const failedMs = 5000
/** A token under an unknown key has the keys read again, but not more often than this. */
const keysMs = 10_000
/** The library reads keys again that are older than a minute. */
const oldSeconds = 61

/** What a provider has said of itself. */
export interface CachedIssuer {
  metadata: openid.ServerMetadata
  keys?: openid.ExportedJWKSCache['jwks']
  keysReadAtMs: number
}

const recent = new BoundedCache<{ known: Promise<CachedIssuer>; untilMs: number }>(200)

/** A provider as this process knows it; it is asked for each revision, every few minutes, by one request at a time. */
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

/** Asks a provider what it is. Throws where it does not answer, or is not the issuer that it was asked as. */
export async function discover(provider: ProviderRecord): Promise<CachedIssuer> {
  const issuer = checkProviderUrl(issuerOf(provider))
  const options = { [openid.customFetch]: guardedFetch, execute: leniencyOf(issuer) }
  const found = await openid.discovery(issuer, clientIdOf(provider), undefined, openid.None(), options)
  const metadata = found.serverMetadata()
  // The library lets some hosts call themselves otherwise: of those, any tenant could sign in.
  if (new URL(metadata.issuer).href !== issuer.href) throw new IssuerMismatch()
  // The only address that a browser is sent to; the others are checked when they are called.
  if (metadata.authorization_endpoint !== undefined) checkProviderUrl(metadata.authorization_endpoint)
  return { metadata, keysReadAtMs: 0 }
}

/** The metadata are those of another issuer. */
export class IssuerMismatch extends Error {
  override readonly name = 'IssuerMismatch'
}

const clientIdOf = ({ settings }: ProviderRecord): string => settings.clientId ?? ''

// oxlint-disable-next-line typescript/no-deprecated -- marked so to stand out; the operator has named this host and port
const leniencyOf = (issuer: URL) => (allowsPlainHttp(issuer) ? [openid.allowInsecureRequests] : [])

/** The platform as a client of a provider, for one exchange: tokens are verified with the provider's keys. */
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

/** In the body where the provider takes it there; else as every provider has to take it. */
const proofOf = ({ token_endpoint_auth_methods_supported: methods }: openid.ServerMetadata, secret: string) => {
  if (secret === '') return openid.None()
  const isPosted = Array.isArray(methods) && methods.includes('client_secret_post')
  return isPosted ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret)
}

/** Does something as a client of a provider, and keeps the keys that were read for it. */
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
