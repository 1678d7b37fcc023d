/** The exit codes of the program. `--help` lists all but the internal `replaced`. */
export const exitCodes = {
  stopped: 0,
  failed: 1,
  usage: 2,
  enrollmentRejected: 3,
  revoked: 4,
  stateInUse: 5,
  stateUnusable: 6,
  checkDns: 10,
  checkProxy: 11,
  checkConnection: 12,
  checkTls: 13,
  checkPlatform: 14,
  checkTime: 15,
  checkRelay: 16,
  checkChannel: 17,
  serviceStopped: 20,
  serviceMissing: 21,
  /** Makes the supervisor start the next version of the relay. */
  replaced: 75,
} as const

/** Thrown to end the program with an exit code and a message that states what to do next. */
export class FatalError extends Error {
  readonly exitCode: number

  constructor(reason: keyof typeof exitCodes, message: string) {
    super(message)
    this.exitCode = exitCodes[reason]
  }
}
