import { messageOf } from './message.ts'
import type { HookFailure } from './protocol.ts'
import { TimeLimitError } from './time-limit.ts'

/** Thrown if an instance rejects or cannot perform a request from the platform. `error` is the code in the response. */
export class HookError extends Error {
  override readonly name = 'HookError'
  readonly error: HookFailure['error']

  constructor(error: HookFailure['error'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.error = error
  }
}

/**
 * Converts a thrown value to a `HookError`: a `HookError` is returned unchanged, a `TimeLimitError` becomes
 * `hook_timeout`, and every other value `hook_failed`.
 */
export const toHookError = (cause: unknown): HookError =>
  cause instanceof HookError
    ? cause
    : new HookError(cause instanceof TimeLimitError ? 'hook_timeout' : 'hook_failed', messageOf(cause), { cause })
