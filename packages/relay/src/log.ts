/** Writes a timestamped line to standard output. */
export function info(text: string): void {
  process.stdout.write(line(text))
}

/** Writes a timestamped line to standard error. */
export function warn(text: string): void {
  process.stderr.write(line(text))
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function line(text: string): string {
  // Text from a server or a file name must not forge lines or control the terminal.
  return `${new Date().toISOString()} ${text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}\n`
}
