import type { ErrorBody, ErrorDetail } from '@platform/contract/common'
import { type ErrorCode, messageOf, statusOf } from '@platform/contract/errors'

export type ErrorExtra = Partial<
  Pick<
    ErrorBody,
    'details' | 'requiredPermission' | 'howToRetrieve' | 'setupComplete' | 'limit' | 'used' | 'resolvedCount'
  >
> & {
  retryAfterSeconds?: number
  headers?: Readonly<Record<string, string>>
  cookies?: readonly string[]
}

/** The caller receives `message`; `cause` is only logged. */
export class PlatformError extends Error {
  readonly code: ErrorCode
  readonly extra: ErrorExtra

  constructor(code: ErrorCode, message: string = messageOf(code), extra: ErrorExtra = {}, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PlatformError'
    this.code = code
    this.extra = extra
  }
}

export const platformError = (code: ErrorCode, extra: ErrorExtra = {}, options?: ErrorOptions): PlatformError =>
  new PlatformError(code, messageOf(code), extra, options)

export const limitReachedError = (limit: number, pluralName: string, used: number = limit): PlatformError =>
  new PlatformError('limit_reached', `There can be at most ${limit} ${pluralName}. Remove one first.`, { limit, used })

export const storeContentionError = (): PlatformError =>
  new PlatformError('conflict', 'Too many concurrent changes of the same resource. Nothing was changed; try again.', {
    retryAfterSeconds: 1,
  })

export const validationFailedError = (details: ErrorDetail[]): PlatformError =>
  platformError('validation_failed', { details: details.slice(0, 50) })

/** Whether a repetition of the same work may succeed. */
export const isTransient = (error: unknown): boolean =>
  error instanceof PlatformError && (error.code === 'conflict' || statusOf(error.code) === 503)
