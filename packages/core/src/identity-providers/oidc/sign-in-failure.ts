import type { ProviderProblem } from '@platform/contract/identity'
import type { SignInError } from '@platform/contract/sign-in'

interface FailureOptions extends ErrorOptions {
  detail?: string
  problem?: ProviderProblem | undefined
}

/** Users see only the code. The cause and `detail` are logged; `detail` is reported together with `problem`. */
export class SignInFailure extends Error {
  override readonly name = 'SignInFailure'
  readonly code: SignInError
  /** The failed check with its values, without tokens and secrets. */
  readonly detail: string | undefined
  /** The problem to report to administrators, unless the browser may have caused it. */
  readonly problem: ProviderProblem | undefined

  constructor(code: SignInError, { detail, problem, ...options }: FailureOptions = {}) {
    super(code, options)
    this.code = code
    this.detail = detail
    this.problem = problem
  }
}
