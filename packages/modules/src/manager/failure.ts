import { type ModuleErrorCode } from '@platform/contract/module'
import { Fault } from '@platform/core/fault'
import { RegistryFailure } from '@platform/registry/failure'
import { RuntimeFailure, type RuntimeProblem } from '../runtime/port.ts'

/** Why an operation cannot succeed, however often it is tried. The message is for people. */
export class OperationFailure extends Error {
  override readonly name = 'OperationFailure'
  readonly code: ModuleErrorCode | undefined

  constructor(message: string, code?: ModuleErrorCode) {
    super(message)
    this.code = code
  }
}

/** What an error means for the operation that it ended. */
export interface Judgement {
  /** For people. */
  message: string
  code?: ModuleErrorCode
  /** Trying again would not help. */
  isFinal: boolean
}

const passing = new Set<RuntimeProblem>(['unavailable', 'timeout'])

export function judge(error: unknown): Judgement {
  if (error instanceof OperationFailure) return { ...told(error), isFinal: true }
  if (error instanceof RegistryFailure) return { message: error.message, isFinal: error.problem !== 'unreachable' }
  if (error instanceof RuntimeFailure) {
    return { message: error.message, code: 'PLAT-MOD-5007', isFinal: !passing.has(error.problem) }
  }
  // What the store cannot do now it can later.
  if (error instanceof Fault) return { message: error.message, isFinal: false }
  return { message: 'The platform failed in a way that it does not know. Its log tells more.', isFinal: false }
}

const told = ({ message, code }: OperationFailure) => ({ message, ...(code !== undefined && { code }) })
