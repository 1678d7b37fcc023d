import { type ErrorBody, type ErrorDetail } from '@platform/contract/common'
import { type ErrorCode, messageOf } from '@platform/contract/errors'

/** What an error body may carry beyond code, message and trace id. */
export type ErrorExtra = Partial<
  Pick<ErrorBody, 'details' | 'requiredPermission' | 'howToRetrieve' | 'setupComplete'>
> & {
  /** Becomes the `Retry-After` header. */
  retryAfterSeconds?: number
  /** Become `Set-Cookie` headers. */
  cookies?: readonly string[]
}

/** A refusal that a caller gets to see. `message` is public; `cause` is for the log. */
export class PlatformError extends Error {
  readonly code: ErrorCode
  readonly extra: ErrorExtra

  constructor(code: ErrorCode, message: string = messageOf(code), extra: ErrorExtra = {}, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Fault'
    this.code = code
    this.extra = extra
  }
}

/** A refusal with the code's default message. */
export const platformError = (code: ErrorCode, extra: ErrorExtra = {}, options?: ErrorOptions): PlatformError =>
  new PlatformError(code, messageOf(code), extra, options)

/** Too many writers met at one place: nothing was done, and trying again soon helps. */
export const storeContention = (): PlatformError =>
  new PlatformError(
    'database_unavailable',
    'Too many requests changed the same thing at once. Nothing was done: try again.',
    {
      retryAfterSeconds: 1,
    },
  )

/** A refusal of single fields (D32). */
export const validationFailed = (details: ErrorDetail[]): PlatformError =>
  platformError('validation_failed', { details: details.slice(0, 50) })
