import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'

/** Why a sign-in with a provider has ended, by the word that the platform leads back here with. */
const providerFailures: Readonly<Record<string, string>> = {
  sign_in_expired: 'The sign-in took too long, or was begun in another browser. Begin it again.',
  provider_unavailable: 'This way to sign in is switched off. Choose another one, or ask an administrator.',
  provider_unreachable: 'The identity provider cannot be reached just now. Try again shortly, or choose another way.',
  provider_error: 'The identity provider could not sign you in. Try again; if it goes on, tell an administrator.',
  access_denied: 'The identity provider did not let you in, or you ended the sign-in there.',
  answer_invalid:
    'What the identity provider answered could not be trusted. Try again; if it goes on, tell an administrator.',
  internal_error: 'The platform failed unexpectedly. Try again; if it goes on, report the trace id.',
}

const otherwise = 'The sign-in with the identity provider has failed. Try again.'

/** What an address says of a failed sign-in: only words and ids that the platform makes are shown. */
export function providerFailure(word: string, traceId: string | undefined): ApiError {
  const message = Object.hasOwn(providerFailures, word) ? providerFailures[word] : otherwise
  return new ApiError(0, { error: 'sign_in_failed', message, ...(isTraceId(traceId) && { traceId }) })
}

const isTraceId = (text: string | undefined): boolean => text !== undefined && /^[\w-]{8,64}$/.test(text)

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** A refusal because of too many attempts, with the time at which the next one may succeed. */
export function withTimeToRetry(error: unknown): unknown {
  if (!isApiError(error, 'rate_limited') || error.retryAfterSeconds === undefined) return error
  const at = clock.format(Date.now() + error.retryAfterSeconds * 1000)
  return withMessage(error, `There were too many attempts. Try again in ${error.retryAfterSeconds} seconds, at ${at}.`)
}
