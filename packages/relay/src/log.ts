/** Writes a message to standard output. */
export function info(text: string): void {
  process.stdout.write(line(text))
}

/** Writes an error and the next step to standard error. */
export function warn(text: string): void {
  process.stderr.write(line(text))
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function line(text: string): string {
  // Text of a server or a file name must not forge lines or control the terminal.
  return `${new Date().toISOString()} ${text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}\n`
}
