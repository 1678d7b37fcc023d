import type { SignInError, SignInOption } from '@platform/contract/sign-in'
import type { Origin } from '../../caller.ts'
import { resolveExternalUser } from '../external-user.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { PlatformError, platformError } from '../../error.ts'
import { newSecret } from '../../id.ts'
import { reportFailure } from '../provider-failure.ts'
import { enabledProviders, publicUrl, redirectUri } from '../provider.ts'
import type { ProviderRecord } from '../record.ts'
import { currentTraceId, log } from '../../log.ts'
import { storeAttempt, storeCode, consumeAttempt } from './attempt.ts'
import { findOidcProvider } from './code.ts'
import type { ProviderCallback } from './exchange.ts'
import { SignInFailure } from './sign-in-failure.ts'

/**
 * Implements the authorization code flow with PKCE, state and nonce, bound to one browser. Tokens never appear in URLs:
 * the browser returns with a code of the platform. The provider client is loaded on demand.
 */

/** `parameters` must not contain input of the request, except a valid return path. */
const signInPage = (portalUrl: string, parameters: Record<string, string>): string =>
  `${portalUrl}/sign-in?${new URLSearchParams(parameters).toString()}`

export async function listSignInOptions(): Promise<SignInOption[]> {
  const [providers, portalUrl] = await Promise.all([enabledProviders(), publicUrl()])
  return providers.map((provider) => signInOption(provider, portalUrl))
}

function signInOption({ id, type, displayName }: ProviderRecord, portalUrl: string): SignInOption {
  const option = { id, type, displayName }
  return type === 'LDAP' ? option : { ...option, authorizeUrl: `${portalUrl}/api/v1/auth/oidc/${id}/authorize` }
}

/** Returns the URL of the provider, or of the sign-in page with an error. `browser` is the secret for the cookie. */
export async function startSignIn(
  providerId: string,
  { returnTo }: { returnTo?: string | undefined },
  origin?: Origin,
): Promise<{ location: string; browser?: string }> {
  const [provider, portalUrl] = await Promise.all([findOidcProvider(providerId), publicUrl()])
  if (provider === undefined) throw platformError('identity_provider_not_found')
  return redirectOnError({ portalUrl, providerId, provider, returnTo, origin }, async () => {
    const { authorizationUrl, discoverIssuer } = await import('./exchange.ts')
    // Discovery comes first, to avoid a write if the provider is unavailable.
    await discoverIssuer(provider)
    const attempt = { providerId, nonce: newSecret(), codeVerifier: newSecret(), ...(returnTo && { returnTo }) }
    const { state, browser } = await storeAttempt(attempt)
    const request = { ...attempt, state, redirectUri: redirectUri(portalUrl, providerId) }
    return { location: await authorizationUrl(provider, request), browser }
  })
}

/**
 * Returns the URL of the sign-in page, with a code for `exchange` or an error; never throws for input from a provider
 * or browser. Consumes the attempt before it sends the provider's code, so that a callback cannot be replayed.
 */
export async function completeSignIn(
  providerId: string,
  callback: ProviderCallback,
  { browsers, origin }: { browsers: readonly string[]; origin: Origin },
): Promise<string> {
  const portalUrl = await publicUrl()
  const { location } = await redirectOnError({ portalUrl, providerId }, async () => {
    const [attempt, provider] = await Promise.all([
      consumeAttempt(callback.state ?? '', browsers, providerId),
      findOidcProvider(providerId),
    ])
    const returnTo = attempt?.returnTo
    return redirectOnError({ portalUrl, providerId, provider, returnTo, origin }, async () => {
      if (attempt?.browser === undefined) throw new SignInFailure('sign_in_expired')
      if (provider === undefined) throw new SignInFailure('provider_unavailable')
      await failpoint('oidc.attemptConsumed')
      const { completeExchange } = await import('./exchange.ts')
      const { identity, grant } = await completeExchange(provider, callback, {
        ...attempt,
        redirectUri: redirectUri(portalUrl, providerId),
      })
      const user = await resolveExternalUser(provider, identity, origin)
      await failpoint('oidc.userKnown')
      const code = await storeCode({ providerId, ...user }, grant, attempt.browser)
      return { location: signInPage(portalUrl, { code, ...(returnTo && { returnTo }) }) }
    })
  })
  return location
}

function signInErrorOf(error: unknown): SignInError {
  if (error instanceof SignInFailure) return error.code
  return error instanceof PlatformError && error.code === 'groups_incomplete' ? error.code : 'internal_error'
}

interface SignInContext {
  portalUrl: string
  providerId: string
  provider?: ProviderRecord | undefined
  returnTo?: string | undefined
  origin?: Origin | undefined
}

async function redirectOnError(
  { portalUrl, providerId, provider, returnTo, origin }: SignInContext,
  work: () => Promise<{ location: string; browser?: string }>,
): Promise<{ location: string; browser?: string }> {
  try {
    return await work()
  } catch (error) {
    const code = signInErrorOf(error)
    const { problem, detail }: Partial<SignInFailure> = error instanceof SignInFailure ? error : {}
    log(code === 'internal_error' ? 'error' : 'info', 'Sign-in failed', { providerId, code, detail, cause: error })
    if (provider && problem && detail) await reportFailure(provider, problem, detail, origin)
    return {
      location: signInPage(portalUrl, { error: code, traceId: currentTraceId(), ...(returnTo && { returnTo }) }),
    }
  }
}
