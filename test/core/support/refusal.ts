import { PlatformError } from '@platform/core/error'

/** The fault that a call is refused with. */
export async function refusal(call: Promise<unknown>): Promise<PlatformError> {
  const outcome = await call.catch((error: unknown) => error)
  if (outcome instanceof PlatformError) return outcome
  throw new Error('It was not refused.', { cause: outcome })
}
