import type { ModuleErrorCode } from '@platform/contract/module'
import { PlatformError } from '@platform/core/error'
import type { ErrorClassification } from '@platform/core/operations/run'
import { RegistryError } from '@platform/oci/error'
import { RuntimeError, type RuntimeErrorKind } from '../runtimes/port.ts'

/** Thrown if an operation cannot succeed, even with retries. The message is for users. */
export class OperationFailure extends Error {
  override readonly name = 'OperationFailure'
  readonly code: ModuleErrorCode | undefined

  constructor(message: string, code?: ModuleErrorCode) {
    super(message)
    this.code = code
  }
}

export interface ModuleErrorClassification extends ErrorClassification {
  code?: ModuleErrorCode
}

const transientKinds = new Set<RuntimeErrorKind>(['unavailable', 'timeout'])

export function classifyModuleError(error: unknown): ModuleErrorClassification {
  // The message of an `OperationFailure` already describes the failure; other errors are logged with their cause.
  return error instanceof OperationFailure
    ? { ...detailsOf(error), isFinal: true }
    : { ...classify(error), cause: error }
}

function classify(error: unknown): ModuleErrorClassification {
  if (error instanceof RegistryError) return { message: error.message, isFinal: error.problem !== 'unreachable' }
  if (error instanceof RuntimeError) {
    return { message: error.message, code: 'PLAT-MOD-5007', isFinal: !transientKinds.has(error.problem) }
  }
  // Errors of the store are transient.
  if (error instanceof PlatformError) return { message: error.message, isFinal: false }
  return { message: 'Unexpected error; see the log.', isFinal: false }
}

const detailsOf = ({ message, code }: OperationFailure) => ({ message, ...(code !== undefined && { code }) })
