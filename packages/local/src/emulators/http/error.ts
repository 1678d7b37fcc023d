/** A refusal in the words of AWS: the SDK makes `code` the name of the exception it throws. */
export class AwsFault extends Error {
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 400) {
    super(message)
    this.name = 'AwsFault'
    this.code = code
    this.status = status
  }
}

/** Thrown by a service to hang up without an answer, as a broken network would. */
export class ConnectionDropped extends Error {
  override readonly name = 'ConnectionDropped'
}
