/** How the program ends; `plat --help` tells the same to people. `run` and `wait` end with the exit code of the job. */
export const exitCodes = {
  ok: 0,
  refused: 1,
  usage: 2,
  notSignedIn: 3,
  unreachable: 4,
  /** The job ended without an exit code of its own. */
  noExitCode: 125,
  interrupted: 130,
  /** Nobody reads standard output any more. */
  unread: 141,
} as const

/** Ends the program with a message that says what happened and what to do next. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(reason: keyof typeof exitCodes, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCodes[reason]
  }
}

/** The message of whatever was thrown; of a failed connection, what the system calls it. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error && error.message === 'fetch failed') return messageOf(error.cause)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return error.message || (code ?? error.name)
}

/** Whether the operating system gave this code for what was thrown. */
export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
