import { statusOf, wireCodeOf } from '@platform/contract/errors'
import { PlatformError, platformError } from '@platform/core/error'
import { currentTraceId, log } from '@platform/core/log'
import { schemeOf } from './authorize.ts'
import type { HttpContext } from './context.ts'
import { type HttpResponse, httpResponse } from './response.ts'

/** Seconds after which to try again, where a refusal that passes by itself does not say. */
const retryAfterSeconds = 2

/** Any error as the error body of section 7. What is not a refusal is a defect: logged, counted, and told to nobody. */
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

/** Every 503 says when to try again (D8). */
export const promisedRetry = ({ status }: HttpResponse): Record<string, string> =>
  status === 503 ? { 'retry-after': String(retryAfterSeconds) } : {}

/** Loaded when it is needed: the portal's function, which asks no store, would load the store's client for this alone. */
async function tally(): Promise<void> {
  try {
    const { countVersionError } = await import('@platform/core/updates/error-count')
    await countVersionError()
  } catch (cause) {
    log('debug', 'A failure could not be counted', { cause })
  }
}
