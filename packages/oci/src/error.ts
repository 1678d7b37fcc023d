export type RegistryErrorKind =
  /** No complete response, a server error, or a rate limit. A retry may succeed. */
  | 'unreachable'
  /** The registry requires credentials, or rejects the given ones. */
  | 'unauthorized'
  /** The repository, manifest or blob does not exist. */
  | 'not_found'
  /** Invalid content or an invalid name, such as a wrong digest or a malformed document. */
  | 'invalid'
  /** The content exceeds a size limit. */
  | 'too_large'
  /** The request was refused for another reason. */
  | 'refused'

/** Thrown by all registry operations. The message is meant for operators and contains no credentials. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly problem: RegistryErrorKind
  /** Seconds to wait before a retry, as requested by the registry. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    problem: RegistryErrorKind,
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number } = {},
  ) {
    super(message, options)
    this.problem = problem
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}
