import type { SignInError } from '@platform/contract/sign-in'
import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client'
import { OutboundError } from '../../outbound/outbound.ts'
import { SignInFailure } from './sign-in-failure.ts'

export async function withProviderErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (cause) {
    throw new SignInFailure(signInErrorOf(cause), { cause })
  }
}

function signInErrorOf(error: unknown): SignInError {
  if (findOutboundError(error) !== undefined) return 'provider_unreachable'
  if (error instanceof AuthorizationResponseError) {
    return error.error === 'access_denied' ? 'access_denied' : 'provider_error'
  }
  const isErrorResponse = error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError
  return isErrorResponse ? 'provider_error' : 'answer_invalid'
}

/** Searches the cause chain, because the library wraps unknown errors. */
export function findOutboundError(error: unknown): OutboundError | undefined {
  if (error instanceof OutboundError) return error
  return error instanceof Error && error.cause !== undefined ? findOutboundError(error.cause) : undefined
}
