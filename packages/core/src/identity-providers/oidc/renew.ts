import * as openid from 'openid-client'
import type { Confirmation, ProviderGrant } from '../../accounts/provider-check.ts'
import type { User } from '../../accounts/user.ts'
import { now } from '../../clock.ts'
import { sha256 } from '../../id.ts'
import { secretOf } from '../provider.ts'
import type { ProviderRecord } from '../record.ts'
import { cachedIssuer, withClient } from './client.ts'

/** Longer refresh tokens are not stored. */
const maxTokenLength = 8000

/** Returns undefined if the provider issued no refresh token or one that is too long. */
export function grantIn(tokens: openid.TokenEndpointResponse): ProviderGrant | undefined {
  const { refresh_token: refreshToken, refresh_expires_in: lifetime } = tokens
  if (refreshToken === undefined || refreshToken.length > maxTokenLength) return undefined
  // Keycloak sends a lifetime; 0 means an unlimited one.
  const lifetimeSeconds = Number(lifetime)
  return { refreshToken, ...(lifetimeSeconds > 0 && { expiresAtMs: now() + lifetimeSeconds * 1000 }) }
}

/** Throws if the provider neither confirms nor rejects the user. */
export async function renewGrant(
  provider: ProviderRecord,
  grant: ProviderGrant,
  { subjectHash }: Pick<User, 'subjectHash'>,
): Promise<Confirmation> {
  const { clientSecret = '' } = await secretOf(provider)
  const issuer = await cachedIssuer(provider)
  try {
    const tokens = await withClient(provider, issuer, clientSecret, (client) =>
      openid.refreshTokenGrant(client, grant.refreshToken),
    )
    const subject = tokens.claims()?.sub
    if (subject !== undefined && sha256(subject) !== subjectHash)
      return { status: 'withdrawn', reason: 'The identity provider answered for another user' }
    const { isInUse: _, ...formerGrant } = grant
    return { status: 'confirmed', grant: grantIn(tokens) ?? formerGrant }
  } catch (error) {
    const isRefused = error instanceof openid.ResponseBodyError && error.error === 'invalid_grant'
    if (!isRefused) throw error
    // If the response to an earlier use was lost, the provider may have replaced the token.
    if (grant.isInUse) return { status: 'unknown' }
    return { status: 'withdrawn', reason: 'The identity provider does not renew the sign-in of the user' }
  }
}
