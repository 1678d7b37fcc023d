import { statusOf, wireCodeOf } from '@platform/contract/errors'
import { PlatformError, platformError } from '@platform/core/error'
import { currentTraceId, log } from '@platform/core/log'
import { schemeOf } from './authorize.ts'
import type { HttpContext } from './context.ts'
import { type HttpResponse, httpResponse } from './response.ts'

// The `Retry-After` of a 503 response without a specific delay.
const defaultRetryAfterSeconds = 2

/** Converts an error to a response. Logs the cause, if any, without disclosing it, and counts unexpected errors. */
export async function toErrorResponse(error: Error, context: HttpContext): Promise<HttpResponse> {
  const platformFailure = error instanceof PlatformError ? error : platformError('internal_error', {}, { cause: error })
  const status = statusOf(platformFailure.code)
  if (platformFailure.cause !== undefined)
    log(status >= 500 ? 'error' : 'debug', platformFailure.code, { cause: platformFailure.cause })
  if (platformFailure.code === 'internal_error') await countError()

  const { retryAfterSeconds: delaySeconds, headers: extraHeaders, cookies, ...details } = platformFailure.extra
  const body = {
    error: wireCodeOf(platformFailure.code),
    message: platformFailure.message,
    traceId: currentTraceId(),
    ...details,
  }
  const headers = {
    ...extraHeaders,
    'content-type': 'application/json',
    ...(delaySeconds !== undefined && { 'retry-after': String(delaySeconds) }),
    ...(status === 401 && { 'www-authenticate': schemeOf(context.get('access') ?? 'user') }),
  }
  return httpResponse(status, JSON.stringify(body), headers, cookies)
}

/** Returns a default `Retry-After` header for a 503 response, and no header for other statuses. */
export const retryHeaders = ({ status }: HttpResponse): Record<string, string> =>
  status === 503 ? { 'retry-after': String(defaultRetryAfterSeconds) } : {}

// Loads the module on demand, because the portal function uses no store and must not load the store's client.
async function countError(): Promise<void> {
  try {
    const { countVersionError } = await import('@platform/core/updates/error-count')
    await countVersionError()
  } catch (cause) {
    log('debug', 'Failed to count the error', { cause })
  }
}
