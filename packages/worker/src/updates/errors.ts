import { type ErrorCode } from '@platform/contract/errors'
import { PlatformError } from '@platform/core/error'
import { type ErrorClassification } from '@platform/core/operations/run'
import { RegistryError } from '@platform/oci/error'
import { TargetError } from './target/port.ts'

/** Why an update cannot succeed, however often it is tried. The message is for people. */
export class UpdateError extends Error {
  override readonly name = 'UpdateFailure'
}

/** What the release feed says of a release that is not, or no longer, one. */
const lasting = new Set<ErrorCode>(['version_not_available', 'infrastructure_update_required'])

/** What an error means for the update that it ended: whatever may pass by itself is tried again. */
export function classifyUpdateError(error: unknown): ErrorClassification {
  if (error instanceof UpdateError) return { message: error.message, isFinal: true }
  return { ...meaningOf(error), cause: error }
}

function meaningOf(error: unknown): ErrorClassification {
  if (error instanceof TargetError) return { message: error.message, isFinal: error.isFinal }
  if (error instanceof PlatformError) return { message: error.message, isFinal: lasting.has(error.code) }
  if (error instanceof RegistryError) return { message: error.message, isFinal: error.problem !== 'unreachable' }
  return { message: 'The platform failed in a way that it does not know. Its log tells more.', isFinal: false }
}

/** What an error says, for people. */
export const describeError = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 500)
