import type { Failure } from './protocol.ts'

/** A function threw, or the thread that ran it died. The message is for the log. */
export class FunctionError extends Error {
  readonly functionName: string
  /** The function has counted it itself; never so where its thread died. */
  readonly isTallied: boolean

  constructor(functionName: string, { name, message, stack, isTallied }: Failure) {
    super(`${functionName}: ${name}: ${message}`)
    this.name = 'FunctionFailed'
    this.functionName = functionName
    this.isTallied = isTallied
    if (stack !== '') this.stack = stack
  }
}

/** A function did not answer in time. It may still be running. */
export class FunctionTimeout extends Error {
  constructor(functionName: string, timeoutMs: number) {
    super(`${functionName} did not answer within ${timeoutMs} ms`)
    this.name = 'FunctionTimedOut'
  }
}
