import { ApiError, isApiError, withMessage } from '../../api/api-error.ts'

/** Messages for error codes of a provider sign-in. */
const providerFailures: Readonly<Record<string, string>> = {
  sign_in_expired: 'The sign-in expired or was started in another browser. Start again.',
  provider_unavailable: 'This provider is disabled. Choose another one or contact an administrator.',
  provider_unreachable: 'The identity provider is unreachable. Try again shortly or choose another one.',
  provider_error: 'The identity provider could not sign you in. Try again; if it persists, contact an administrator.',
  access_denied: 'The identity provider denied access, or you cancelled the sign-in.',
  answer_invalid:
    'The identity provider’s response could not be verified. Try again; if it persists, contact an administrator.',
  internal_error: 'The platform failed unexpectedly. Try again; if it persists, report the trace id.',
}

const otherwise = 'The sign-in with the identity provider failed. Try again.'

/** The error of a failed provider sign-in. Unknown codes and trace ids of the address are not shown. */
export function providerFailure(word: string, traceId: string | undefined): ApiError {
  const message = Object.hasOwn(providerFailures, word) ? providerFailures[word] : otherwise
  return new ApiError(0, { error: 'sign_in_failed', message, ...(isTraceId(traceId) && { traceId }) })
}

const isTraceId = (text: string | undefined): boolean => text !== undefined && /^[\w-]{8,64}$/.test(text)

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })

/** Adds the time of the next attempt to a rate limit error. */
export function withTimeToRetry(error: unknown): unknown {
  if (!isApiError(error, 'rate_limited') || error.retryAfterSeconds === undefined) return error
  const at = clock.format(Date.now() + error.retryAfterSeconds * 1000)
  return withMessage(error, `Too many attempts. Try again in ${error.retryAfterSeconds} seconds, at ${at}.`)
}
