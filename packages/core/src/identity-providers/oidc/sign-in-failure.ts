import type { SignInError } from '@platform/contract/sign-in'

/** An ended sign-in. Users see only the code; the cause is logged. */
export class SignInFailure extends Error {
  override readonly name = 'SignInFailure'
  readonly word: SignInError

  constructor(word: SignInError, options?: ErrorOptions) {
    super(word, options)
    this.word = word
  }
}
