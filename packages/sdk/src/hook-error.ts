import { messageOf } from './message.ts'
import { type HookFailure } from './protocol.ts'
import { TimeLimitError } from './time-limit.ts'

/** Why an instance did not do what the platform asked. */
export class HookError extends Error {
  override readonly name = 'HookFault'
  readonly error: HookFailure['error']

  constructor(error: HookFailure['error'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.error = error
  }
}

/** Anything that the module's code threw, as a fault. */
export const toHookError = (cause: unknown): HookError =>
  cause instanceof HookError
    ? cause
    : new HookError(cause instanceof TimeLimitError ? 'hook_timeout' : 'hook_failed', messageOf(cause), { cause })
