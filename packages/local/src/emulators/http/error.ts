/** The SDK uses `code` as the name of the exception. */
export class AwsServiceError extends Error {
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 400) {
    super(message)
    this.name = 'AwsServiceError'
    this.code = code
    this.status = status
  }
}

/** Thrown by a hook to leave a call without a response. The connection closes, or stays open if `hangs`. */
export class NoResponse extends Error {
  readonly hangs: boolean

  constructor({ hangs = false } = {}) {
    super('No response')
    this.hangs = hangs
  }
}
