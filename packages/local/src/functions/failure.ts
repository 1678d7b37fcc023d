import type { Failure } from './protocol.ts'

/** A function threw, or the thread that ran it died. The message is for the log. */
export class FunctionFailed extends Error {
  readonly functionName: string

  constructor(functionName: string, { name, message, stack }: Failure) {
    super(`${functionName}: ${name}: ${message}`)
    this.name = 'FunctionFailed'
    this.functionName = functionName
    if (stack !== '') this.stack = stack
  }
}

/** A function did not answer in time. It may still be running. */
export class FunctionTimedOut extends Error {
  constructor(functionName: string, timeoutMs: number) {
    super(`${functionName} did not answer within ${timeoutMs} ms`)
    this.name = 'FunctionTimedOut'
  }
}
