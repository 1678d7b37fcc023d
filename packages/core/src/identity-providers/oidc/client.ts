import * as openid from 'openid-client'
import * as z from 'zod'
import { elapsedMs, nowSeconds, systemSeconds } from '../../clock.ts'
import { issuerOf } from '../provider.ts'
import type { ProviderRecord } from '../record.ts'
import { InvalidResponse } from './errors.ts'
import { checkProviderUrl, guardedFetch, allowsPlainHttp } from './fetch.ts'
import { BoundedCache } from '../../lib/bounded-cache.ts'

/** Each process caches the metadata and keys of OpenID providers for a few minutes. */

const metadataTtlMs = 5 * 60_000
/** Failures are also cached, to limit requests to an unavailable provider. */
const failureTtlMs = 5000
/** The minimum interval between reloads of the keys when a key id is unknown. */
const keyReloadMs = 10_000
/** If a key id is unknown, the library reloads keys older than a minute. */
const staleKeySeconds = 61

export interface CachedIssuer {
  metadata: openid.ServerMetadata
  keys?: openid.ExportedJWKSCache['jwks']
  keysReadAtMs: number
}

const issuers = new BoundedCache<{ issuer: Promise<CachedIssuer>; untilMs: number }>(200)

/** The cache key contains the revision, so that changed settings take effect at once. */
export function cachedIssuer(provider: ProviderRecord): Promise<CachedIssuer> {
  const cacheKey = `${provider.id} ${provider.revision}`
  const cachedEntry = issuers.get(cacheKey)
  if (cachedEntry !== undefined && cachedEntry.untilMs > elapsedMs()) return cachedEntry.issuer
  const cacheEntry = { issuer: discover(provider), untilMs: elapsedMs() + metadataTtlMs }
  cacheEntry.issuer.catch(() => {
    cacheEntry.untilMs = elapsedMs() + failureTtlMs
  })
  issuers.set(cacheKey, cacheEntry)
  return cacheEntry.issuer
}

/** Throws if the provider does not respond, or its metadata are invalid or for another issuer. */
export async function discover(provider: ProviderRecord): Promise<CachedIssuer> {
  const issuer = checkProviderUrl(issuerOf(provider))
  const options = { [openid.customFetch]: guardedFetch, execute: plainHttpOptions(issuer) }
  const discoveredConfiguration = await openid
    .discovery(issuer, clientIdOf(provider), undefined, openid.None(), options)
    .catch((error: unknown) => {
      throw mismatchIn(error, provider) ?? error
    })
  const metadata = discoveredConfiguration.serverMetadata()
  // The library exempts some hosts from this check, which would let any tenant sign in.
  if (new URL(metadata.issuer).href !== issuer.href) throw issuerMismatchError(metadata.issuer, provider)
  // The browser opens this address; the platform checks the others when it calls them.
  if (metadata.authorization_endpoint !== undefined) checkProviderUrl(metadata.authorization_endpoint)
  return { metadata, keysReadAtMs: 0 }
}

function mismatchIn(error: unknown, provider: ProviderRecord): InvalidResponse | undefined {
  const isMismatch = error instanceof openid.ClientError && error.code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
  const data = isMismatch ? MismatchData.safeParse(error.cause).data : undefined
  return data && issuerMismatchError(data.body.issuer, provider)
}

const MismatchData = z.object({ body: z.object({ issuer: z.string() }) })

/** Discloses the issuer of the metadata only if it differs from the settings by a slash. */
export function issuerMismatchError(issuer: string, provider: ProviderRecord): InvalidResponse {
  const configuredIssuer = issuerOf(provider)
  const differsBySlash = issuer === `${configuredIssuer}/` || configuredIssuer === `${issuer}/`
  return new InvalidResponse(
    differsBySlash
      ? `The metadata name the issuer ${issuer}, the settings ${configuredIssuer}. Configure it as in the metadata.`
      : 'The metadata are for another issuer. Check the spelling; for a cloud directory, use the tenant id.',
  )
}

const clientIdOf = ({ settings }: ProviderRecord): string => settings.clientId ?? ''

// oxlint-disable-next-line typescript/no-deprecated -- only for hosts on the allowlist of the operator
const plainHttpOptions = (issuer: URL) => (allowsPlainHttp(issuer) ? [openid.allowInsecureRequests] : [])

export function clientOf(provider: ProviderRecord, { metadata, keys, keysReadAtMs }: CachedIssuer, secret = '') {
  const clock = { [openid.clockSkew]: nowSeconds() - systemSeconds(), [openid.clockTolerance]: 30 }
  const client = new openid.Configuration(metadata, clientIdOf(provider), clock, clientAuthentication(metadata, secret))
  client[openid.customFetch] = guardedFetch
  openid.enableNonRepudiationChecks(client)
  for (const allowPlainHttp of plainHttpOptions(new URL(metadata.issuer))) allowPlainHttp(client)
  const isFresh = keysReadAtMs + keyReloadMs > elapsedMs()
  if (keys) openid.setJwksCache(client, { jwks: keys, uat: systemSeconds() - (isFresh ? 0 : staleKeySeconds) })
  return client
}

/**
 * Sends the secret in the body if the provider supports it, otherwise by HTTP Basic, which all providers must support.
 */
const clientAuthentication = (
  { token_endpoint_auth_methods_supported: methods }: openid.ServerMetadata,
  secret: string,
) => {
  if (secret === '') return openid.None()
  const supportsPost = Array.isArray(methods) && methods.includes('client_secret_post')
  return supportsPost ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret)
}

export async function withClient<Result>(
  provider: ProviderRecord,
  issuer: CachedIssuer,
  secret: string,
  work: (client: openid.Configuration) => Promise<Result>,
): Promise<Result> {
  const client = clientOf(provider, issuer, secret)
  const uatBefore = openid.getJwksCache(client)?.uat
  try {
    return await work(client)
  } finally {
    const cache = openid.getJwksCache(client)
    if (cache?.uat !== uatBefore) Object.assign(issuer, { keys: cache?.jwks ?? issuer.keys, keysReadAtMs: elapsedMs() })
  }
}
