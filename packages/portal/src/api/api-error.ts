export interface ErrorDetail {
  in: string
  /** JSON Pointer of the field. */
  path: string
  message: string
}

interface ErrorBody {
  error?: string
  message?: string
  traceId?: string
  details?: ErrorDetail[]
}

const bodyOf = (value: unknown): ErrorBody & Record<string, unknown> =>
  typeof value === 'object' && value !== null ? { ...value } : {}

/** An error response from the platform, a missing response, or an incomplete form. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number
  /** The error code of the response, `unreachable` without a response, or `unknown` if the response has no code. */
  readonly code: string
  /** Identifies the request in the log. Undefined if there was no response, or the response has no trace id. */
  readonly traceId: string | undefined
  readonly details: readonly ErrorDetail[]
  /** The whole body. Some errors have additional fields, such as `howToRetrieve`. */
  readonly body: Readonly<Record<string, unknown>>
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, error: unknown, headers?: Headers, options?: ErrorOptions) {
    const body = bodyOf(error)
    super(body.message ?? `The platform returned ${status}. Try again.`, options)
    this.status = status
    this.code = body.error ?? 'unknown'
    this.traceId = body.traceId ?? headers?.get('x-trace-id') ?? undefined
    this.details = body.details ?? []
    this.body = body
    const seconds = Number(headers?.get('retry-after') ?? undefined)
    this.retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined
  }

  /** Returns the error of a request that has no response. */
  static unreachable(cause: unknown): ApiError {
    const message = 'The platform cannot be reached. Check the connection and try again.'
    return new ApiError(0, { error: 'unreachable', message }, undefined, { cause })
  }

  /** Whether a retry may succeed shortly. */
  get isTransient(): boolean {
    return this.code === 'conflict' || [0, 429, 502, 503, 504].includes(this.status)
  }
}

export const isApiError = (error: unknown, code: string): error is ApiError =>
  error instanceof ApiError && error.code === code

/** Returns a copy of the error with another message. */
export const withMessage = (
  error: ApiError,
  message: string,
  details: readonly ErrorDetail[] = error.details,
): ApiError => new ApiError(error.status, { ...error.body, message, details })

/** Returns the error of a form that lacks an input. */
export const incompleteError = (message: string): ApiError => new ApiError(400, { error: 'incomplete', message })
