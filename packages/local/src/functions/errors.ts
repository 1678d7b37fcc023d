import type { SerializedError } from './protocol.ts'

/** A function threw, its thread died, or no thread has started. The message is for the log. */
export class FunctionError extends Error {
  readonly functionName: string
  /** Whether the function has counted the error itself; false if its thread died or no thread has started. */
  readonly isCounted: boolean

  constructor(functionName: string, { name, message, stack, isCounted }: SerializedError) {
    super(`${functionName}: ${name}: ${message}`)
    this.name = 'FunctionError'
    this.functionName = functionName
    this.isCounted = isCounted
    if (stack !== '') this.stack = stack
  }
}

/** A function exceeded its time limit. The invocation may still be running. */
export class FunctionTimeout extends Error {
  constructor(functionName: string, timeoutMs: number) {
    super(`${functionName} did not respond within ${timeoutMs} ms`)
    this.name = 'FunctionTimeout'
  }
}
