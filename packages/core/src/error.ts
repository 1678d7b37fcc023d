import { type ErrorBody, type ErrorDetail } from '@platform/contract/common'
import { type ErrorCode, messageOf } from '@platform/contract/errors'

/** Fields of an error body beyond code, message and trace id. */
export type ErrorExtra = Partial<
  Pick<ErrorBody, 'details' | 'requiredPermission' | 'howToRetrieve' | 'setupComplete'>
> & {
  /** Becomes the `Retry-After` header. */
  retryAfterSeconds?: number
  /** Become `Set-Cookie` headers. */
  cookies?: readonly string[]
}

/** An error for the caller. `message` is public; `cause` is only logged. */
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

/** An error with the default message of its code. */
export const platformError = (code: ErrorCode, extra: ErrorExtra = {}, options?: ErrorOptions): PlatformError =>
  new PlatformError(code, messageOf(code), extra, options)

/** Too many concurrent writers of one item: nothing was changed, and a retry may succeed. */
export const storeContention = (): PlatformError =>
  new PlatformError(
    'database_unavailable',
    'Too many concurrent changes of the same resource. Nothing was changed; try again.',
    { retryAfterSeconds: 1 },
  )

/** An error about single fields. */
export const validationFailed = (details: ErrorDetail[]): PlatformError =>
  platformError('validation_failed', { details: details.slice(0, 50) })
