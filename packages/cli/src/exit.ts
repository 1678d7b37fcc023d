/** Exit codes, also listed by `plat --help`. `run` and `wait` can also exit with the exit code of a job. */
export const exitCodes = {
  ok: 0,
  refused: 1,
  usage: 2,
  notSignedIn: 3,
  unreachable: 4,
  /** The job ended without an exit code. */
  noExitCode: 125,
  interrupted: 130,
  /** The reader of standard output has closed it. */
  outputClosed: 141,
} as const

/** Thrown to end the program with a message and an exit code. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(reason: keyof typeof exitCodes, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCodes[reason]
  }
}

/** Returns the message of any thrown value. If the message of an error is empty, returns its code or name. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return error.message || (code ?? error.name)
}

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
