/** Why a registry was of no help, in one word. */
export type RegistryErrorKind =
  /** No answer, or a server's failure: trying again may help. */
  | 'unreachable'
  /** It wants credentials, or other ones. */
  | 'unauthorized'
  /** There is no such repository, manifest or blob. */
  | 'not_found'
  /** What it answered is not what was asked for: a wrong digest, a broken document. */
  | 'invalid'
  /** What it answered is larger than the limit. */
  | 'too_large'
  /** It refused for another reason. */
  | 'refused'

/** Thrown by whatever asks a registry. The message is fit for operators: it names the registry and no credentials. */
export class RegistryError extends Error {
  override readonly name = 'RegistryFailure'
  readonly problem: RegistryErrorKind
  /** Seconds after which the registry asks to be tried again. */
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
