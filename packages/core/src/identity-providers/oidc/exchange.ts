import * as openid from 'openid-client'
import { nowSeconds } from '../../clock.ts'
import { secretOf } from '../provider.ts'
import type { ExternalIdentity, ProviderRecord } from '../record.ts'
import type { Attempt } from './attempt.ts'
import { identityOf, lacksClaims } from './claims.ts'
import { withClient, clientOf, cachedIssuer, type CachedIssuer } from './client.ts'
import type { ProviderGrant } from '../../accounts/provider-check.ts'
import { grantIn } from './renew.ts'
import { describeClaim, InvalidResponse, withProviderErrors } from './errors.ts'
import { SignInFailure } from './sign-in-failure.ts'

export interface ProviderCallback {
  state?: string | undefined
  code?: string | undefined
  iss?: string | undefined
  error?: string | undefined
}

/** Some gateways reject longer URLs. */
const maxUrlLength = 6000

export const discoverIssuer = async (provider: ProviderRecord): Promise<void> =>
  void (await withProviderErrors(() => cachedIssuer(provider)))

type AuthorizationRequest = Attempt & { state: string; redirectUri: string }

export const authorizationUrl = (provider: ProviderRecord, request: AuthorizationRequest): Promise<string> =>
  withProviderErrors(() => buildAuthorizationUrl(provider, request))

async function buildAuthorizationUrl(
  provider: ProviderRecord,
  { state, nonce, codeVerifier, redirectUri }: AuthorizationRequest,
): Promise<string> {
  const issuer = await cachedIssuer(provider)
  const scopes = new Set(['openid', ...(provider.settings.scopes ?? defaultScopes(issuer))])
  const { href } = openid.buildAuthorizationUrl(clientOf(provider, issuer), {
    redirect_uri: redirectUri,
    scope: [...scopes].join(' '),
    state,
    nonce,
    code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  })
  if (href.length > maxUrlLength) throw new InvalidResponse('The authorization URL is too long.')
  return href
}

/** `offline_access` requests a refresh token, with which the platform later checks that the user still exists. */
const defaultScopes = ({ metadata: { scopes_supported: supportedScopes } }: CachedIssuer): string[] => [
  'profile',
  'email',
  ...(Array.isArray(supportedScopes) && supportedScopes.includes('offline_access') ? ['offline_access'] : []),
]

export async function completeExchange(
  provider: ProviderRecord,
  callback: ProviderCallback,
  { nonce, codeVerifier, redirectUri }: Attempt & { redirectUri: string },
): Promise<{ identity: ExternalIdentity; grant: ProviderGrant | undefined }> {
  if (callback.code === undefined && callback.error === undefined)
    throw new SignInFailure('answer_invalid', { detail: 'The response has neither a code nor an error.' })
  const { clientSecret = '' } = await secretOf(provider)
  const url = new URL(redirectUri)
  for (const [name, value] of Object.entries(callback)) if (value !== undefined) url.searchParams.set(name, value)
  const checks = { pkceCodeVerifier: codeVerifier, expectedNonce: nonce, expectedState: callback.state ?? '' }
  return withProviderErrors(async () => {
    const issuer = await cachedIssuer(provider)
    const { claims, grant } = await withClient(provider, issuer, clientSecret, async (client) => {
      const tokens = await openid.authorizationCodeGrant(client, url, { ...checks, idTokenExpected: true })
      const idToken = tokens.claims()
      if (idToken === undefined) throw new InvalidResponse('The response has no ID token.')
      checkIdToken(idToken, provider)
      const needsUserInfo = lacksClaims(provider, idToken) && issuer.metadata.userinfo_endpoint !== undefined
      const userInfo = needsUserInfo && (await openid.fetchUserInfo(client, tokens.access_token, idToken.sub))
      return { claims: { ...userInfo, ...idToken }, grant: grantIn(tokens) }
    })
    const identity = identityOf(provider, claims)
    if (identity === undefined) throw new InvalidResponse('The ID token has no valid subject.')
    return { identity, grant }
  })
}

/** The library checks neither the authorised party of a token for one audience nor the time of issue. */
function checkIdToken({ azp, iat }: openid.IDToken, { settings: { clientId } }: ProviderRecord): void {
  const now = nowSeconds()
  if (azp !== undefined && azp !== clientId)
    throw new InvalidResponse(describeClaim('azp', azp, { expected: clientId }))
  if (iat > now + 60) throw new InvalidResponse(describeClaim('iat', iat, { now }))
}
