/** Tells a person what happened, on standard output. */
export function say(text: string): void {
  process.stdout.write(line(text))
}

/** Tells a person what went wrong and what to do next, on standard error. */
export function warn(text: string): void {
  process.stderr.write(line(text))
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function line(text: string): string {
  // Text of a server or a file name must not forge lines or drive the terminal.
  return `${new Date().toISOString()} ${text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}\n`
}
