import type { ErrorCode } from '@platform/contract/errors'
import { PlatformError } from '@platform/core/error'
import type { ErrorClassification } from '@platform/core/operations/run'
import { RegistryError } from '@platform/oci/error'
import { TargetError } from './target/port.ts'

/** Thrown if an update cannot succeed, even with retries. The message is for users. */
export class UpdateError extends Error {
  override readonly name = 'UpdateError'
}

/** Codes for a release that does not exist or cannot be applied; a retry would fail too. */
const finalCodes = new Set<ErrorCode>(['version_not_available', 'infrastructure_update_required'])

export function classifyUpdateError(error: unknown): ErrorClassification {
  if (error instanceof UpdateError) return { message: error.message, isFinal: true }
  return { ...classify(error), cause: error }
}

function classify(error: unknown): ErrorClassification {
  if (error instanceof TargetError) return { message: error.message, isFinal: error.isFinal }
  if (error instanceof PlatformError) return { message: error.message, isFinal: finalCodes.has(error.code) }
  if (error instanceof RegistryError) return { message: error.message, isFinal: error.problem !== 'unreachable' }
  return { message: 'Unexpected error; see the log.', isFinal: false }
}

export const describeError = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).slice(0, 500)
