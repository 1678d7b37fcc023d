import type { ErrorBody } from '@platform/contract/common'
import { statusOf, wireCodeOf } from '@platform/contract/errors'
import { PlatformError, platformError } from '@platform/core/error'
import { FunctionTimeout } from '../functions/errors.ts'
import type { HttpResponse } from './result.ts'

/** The API has no error code for the timeout of a function, so clients receive a code that they retry. */
const functionTimeoutError = () =>
  new PlatformError('database_unavailable', 'The request timed out. Try again shortly.', {
    retryAfterSeconds: 2,
  })

export function toPublicError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error
  return error instanceof FunctionTimeout ? functionTimeoutError() : platformError('internal_error')
}

/** Returns a response with the same error body as the responses of functions. */
export function errorResponse({ code, message, extra }: PlatformError, traceId: string): HttpResponse {
  const body: ErrorBody = { error: wireCodeOf(code), message, traceId }
  const headers = new Map([
    ['content-type', 'application/json'],
    ['cache-control', 'no-store'],
    ['referrer-policy', 'no-referrer'],
    ['x-content-type-options', 'nosniff'],
    ['x-trace-id', traceId],
  ])
  if (extra.retryAfterSeconds !== undefined) headers.set('retry-after', String(extra.retryAfterSeconds))
  return { status: statusOf(code), headers, body: Buffer.from(JSON.stringify(body)) }
}
