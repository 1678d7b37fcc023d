import { type SignInOption } from '@platform/contract/sign-in'
import { type Origin } from '../../caller.ts'
import { resolveExternalUser } from '../external-user.ts'
import { failpoint } from '../../lib/failpoint.ts'
import { platformError } from '../../error.ts'
import { newSecret } from '../../id.ts'
import { enabledProviders, publicUrl, redirectUri } from '../provider.ts'
import { type ProviderRecord } from '../record.ts'
import { currentTraceId, log } from '../../log.ts'
import { storeAttempt, storeCode, consumeAttempt } from './attempt.ts'
import { findOidcProvider } from './code.ts'
import type { ProviderCallback } from './exchange.ts'
import { SignInFailure } from '../sign-in-error.ts'

/**
 * Sign-in with OpenID Connect (D41): code with PKCE, state and nonce, all bound to one browser. Tokens never stand in an
 * address: what comes back is a code of the platform's own. What speaks to providers is loaded by the first sign-in.
 */

/** The sign-in page of the portal: everything that it is told is the platform's own. */
const signInPage = (portal: string, told: Record<string, string>): string =>
  `${portal}/sign-in?${new URLSearchParams(told).toString()}`

/** With whom one can sign in just now. Two calls. */
export async function listSignInOptions(): Promise<SignInOption[]> {
  const [providers, portal] = await Promise.all([enabledProviders(), publicUrl()])
  return providers.map((provider) => choiceOf(provider, portal))
}

function choiceOf({ id, type, displayName }: ProviderRecord, portal: string): SignInOption {
  const choice = { id, type, displayName }
  return type === 'LDAP' ? choice : { ...choice, authorizeUrl: `${portal}/api/v1/auth/oidc/${id}/authorize` }
}

/**
 * Begins a sign-in: where the browser goes, and the secret that it must keep. Throws `identity_provider_not_found`; leads
 * to the sign-in page where the provider cannot be reached. Three calls.
 */
export async function startSignIn(
  providerId: string,
  { returnTo }: { returnTo?: string | undefined },
): Promise<{ location: string; browser?: string }> {
  const [provider, portal] = await Promise.all([findOidcProvider(providerId), publicUrl()])
  if (provider === undefined) throw platformError('identity_provider_not_found')
  return leading(portal, provider.id, async () => {
    const { authorizationUrl, discoverIssuer } = await import('./exchange.ts')
    // A provider that does not answer costs no write.
    await discoverIssuer(provider)
    const attempt = { providerId, nonce: newSecret(), codeVerifier: newSecret(), ...(returnTo && { returnTo }) }
    const { state, browser } = await storeAttempt(attempt)
    const toProvider = { ...attempt, state, redirectUri: redirectUri(portal, providerId) }
    return { location: await authorizationUrl(provider, toProvider), browser }
  })
}

/**
 * Ends what `begin` has begun: where the browser goes, with a code for `exchange` or with an error. Never throws for what a
 * provider or a browser sends. Eight calls or nine; the attempt is used up before the provider hears of the code.
 */
export async function completeSignIn(
  providerId: string,
  answer: ProviderCallback,
  { browser, origin }: { browser: string; origin: Origin },
): Promise<string> {
  const portal = await publicUrl()
  const { location } = await leading(portal, providerId, async () => {
    const [attempt, provider] = await Promise.all([
      consumeAttempt(answer.state ?? '', browser, providerId),
      findOidcProvider(providerId),
    ])
    if (attempt === undefined) throw new SignInFailure('sign_in_expired')
    if (provider === undefined) throw new SignInFailure('provider_unavailable')
    await failpoint('oidc.attemptTaken')
    const { completeExchange } = await import('./exchange.ts')
    const identity = await completeExchange(provider, answer, {
      ...attempt,
      redirectUri: redirectUri(portal, providerId),
    })
    const user = await resolveExternalUser(provider, identity, origin)
    await failpoint('oidc.userKnown')
    const code = await storeCode({ providerId, ...user }, browser)
    return { location: signInPage(portal, { code, ...(attempt.returnTo && { returnTo: attempt.returnTo }) }) }
  })
  return location
}

/** Leads the browser to where the work says, or to the sign-in page with the word for what went wrong. */
async function leading(
  portal: string,
  providerId: string,
  work: () => Promise<{ location: string; browser?: string }>,
): Promise<{ location: string; browser?: string }> {
  try {
    return await work()
  } catch (error) {
    const word = error instanceof SignInFailure ? error.word : 'internal_error'
    log(word === 'internal_error' ? 'error' : 'info', 'sign-in failed', { providerId, word, cause: error })
    return { location: signInPage(portal, { error: word, traceId: currentTraceId() }) }
  }
}
