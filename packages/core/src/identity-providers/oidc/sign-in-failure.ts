import type { SignInError } from '@platform/contract/sign-in'

/** Users see only the code; the cause is logged. */
export class SignInFailure extends Error {
  override readonly name = 'SignInFailure'
  readonly code: SignInError

  constructor(code: SignInError, options?: ErrorOptions) {
    super(code, options)
    this.code = code
  }
}
