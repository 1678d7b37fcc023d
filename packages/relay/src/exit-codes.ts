/** How the program ends; `--help` tells the same to people. */
export const exitCodes = {
  stopped: 0,
  failed: 1,
  usage: 2,
  enrollmentRefused: 3,
  revoked: 4,
  stateInUse: 5,
} as const

/** Ends the program with a message that says what to do next. */
export class FatalError extends Error {
  readonly exitCode: number

  constructor(reason: keyof typeof exitCodes, message: string) {
    super(message)
    this.exitCode = exitCodes[reason]
  }
}
