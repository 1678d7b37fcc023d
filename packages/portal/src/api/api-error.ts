/** One field of a request that the platform did not take (D32). */
export interface ErrorDetail {
  in: string
  /** A JSON Pointer. */
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

/** What went wrong with a call: what the platform said, or that it said nothing. */
export class ApiError extends Error {
  override readonly name = 'ApiFault'
  /** The HTTP status; 0 where no answer came. */
  readonly status: number
  /** The machine's word for it, one of the API's closed list, or `unreachable`. */
  readonly code: string
  /** Leads to the server's log lines; undefined where no answer came. */
  readonly traceId: string | undefined
  readonly details: readonly ErrorDetail[]
  /** Everything that the body holds: some errors tell more, such as `howToRetrieve`. */
  readonly body: Readonly<Record<string, unknown>>
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, error: unknown, headers?: Headers, options?: ErrorOptions) {
    const body = bodyOf(error)
    super(body.message ?? `The platform answered with ${status}. Try again.`, options)
    this.status = status
    this.code = body.error ?? 'unknown'
    this.traceId = body.traceId ?? headers?.get('x-trace-id') ?? undefined
    this.details = body.details ?? []
    this.body = body
    const seconds = Number(headers?.get('retry-after') ?? undefined)
    this.retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined
  }

  /** No answer came: the connection, the proxy or the platform is away. */
  static unreachable(cause: unknown): ApiError {
    const message = 'The platform cannot be reached. Check the connection and try again.'
    return new ApiError(0, { error: 'unreachable', message }, undefined, { cause })
  }

  /** Whether the same call may well succeed a little later. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504
  }
}

export const isApiError = (error: unknown, code: string): error is ApiError =>
  error instanceof ApiError && error.code === code

/** The same fault in other words, where the portal knows more about the moment than the platform does. */
export const withMessage = (
  fault: ApiError,
  message: string,
  details: readonly ErrorDetail[] = fault.details,
): ApiError => new ApiError(fault.status, { ...fault.body, message, details })
