import { statusOf, wireCodeOf } from '@platform/contract/errors'
import { PlatformError, platformError } from '@platform/core/error'
import { currentTraceId, log } from '@platform/core/log'
import { schemeOf } from './authorize.ts'
import type { HttpContext } from './context.ts'
import { type HttpResponse, httpResponse } from './response.ts'

/** The default `Retry-After` of a 503. */
const retryAfterSeconds = 2

/** Converts any error to the API's error body. Unexpected errors are logged, counted and not disclosed. */
export async function failure(error: Error, context: HttpContext): Promise<HttpResponse> {
  const refusal = error instanceof PlatformError ? error : platformError('internal_error', {}, { cause: error })
  const status = statusOf(refusal.code)
  if (refusal.cause !== undefined) log(status >= 500 ? 'error' : 'debug', refusal.code, { cause: refusal.cause })
  if (refusal.code === 'internal_error') await tally()

  const { retryAfterSeconds: waitSeconds, cookies, ...shown } = refusal.extra
  const body = { error: wireCodeOf(refusal.code), message: refusal.message, traceId: currentTraceId(), ...shown }
  const headers = {
    'content-type': 'application/json',
    ...(waitSeconds !== undefined && { 'retry-after': String(waitSeconds) }),
    ...(status === 401 && { 'www-authenticate': schemeOf(context.get('access') ?? 'user') }),
  }
  return httpResponse(status, JSON.stringify(body), headers, cookies)
}

/** Every 503 has a `Retry-After` header. */
export const promisedRetry = ({ status }: HttpResponse): Record<string, string> =>
  status === 503 ? { 'retry-after': String(retryAfterSeconds) } : {}

/** Loaded on demand: the portal function uses no store and would otherwise load the store's client. */
async function tally(): Promise<void> {
  try {
    const { countVersionError } = await import('@platform/core/updates/error-count')
    await countVersionError()
  } catch (cause) {
    log('debug', 'A failure could not be counted', { cause })
  }
}
