import { type ModuleErrorCode } from '@platform/contract/module'
import { PlatformError } from '@platform/core/error'
import { type ErrorClassification as OperationJudgement } from '@platform/core/operations/run'
import { RegistryError } from '@platform/oci/error'
import { RuntimeError, type RuntimeErrorKind } from '../runtimes/port.ts'

/** The operation cannot succeed, even with retries. The message is for users. */
export class OperationFailure extends Error {
  override readonly name = 'OperationFailure'
  readonly code: ModuleErrorCode | undefined

  constructor(message: string, code?: ModuleErrorCode) {
    super(message)
    this.code = code
  }
}

/** The meaning of an error for its module operation. */
export interface Judgement extends OperationJudgement {
  code?: ModuleErrorCode
}

const passing = new Set<RuntimeErrorKind>(['unavailable', 'timeout'])

export function classifyModuleError(error: unknown): Judgement {
  // The message describes a module's error; other errors are logged with their cause.
  return error instanceof OperationFailure ? { ...told(error), isFinal: true } : { ...meaningOf(error), cause: error }
}

function meaningOf(error: unknown): Judgement {
  if (error instanceof RegistryError) return { message: error.message, isFinal: error.problem !== 'unreachable' }
  if (error instanceof RuntimeError) {
    return { message: error.message, code: 'PLAT-MOD-5007', isFinal: !passing.has(error.problem) }
  }
  // A store error is transient.
  if (error instanceof PlatformError) return { message: error.message, isFinal: false }
  return { message: 'The platform failed in a way that it does not know. Its log tells more.', isFinal: false }
}

const told = ({ message, code }: OperationFailure) => ({ message, ...(code !== undefined && { code }) })
