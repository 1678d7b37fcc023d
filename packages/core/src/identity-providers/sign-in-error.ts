import { type SignInError } from '@platform/contract/sign-in'

/** Why a sign-in has ended. People are told the word and nothing else; the cause is for the log. */
export class SignInFailure extends Error {
  override readonly name = 'SignInFailure'
  readonly word: SignInError

  constructor(word: SignInError, options?: ErrorOptions) {
    super(word, options)
    this.word = word
  }
}
