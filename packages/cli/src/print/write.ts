import { once } from 'node:events'
import { oneLine } from './text.ts'

/** Writes to standard output. Waits until a slow reader has caught up. */
export async function write(text: string | Uint8Array): Promise<void> {
  if (text.length > 0 && !process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Writes to standard error. Waits until a slow reader has caught up. */
export async function writeError(text: string | Uint8Array): Promise<void> {
  if (text.length > 0 && !process.stderr.write(text)) await once(process.stderr, 'drain')
}

/** Prints a message on standard error. Control characters are visible, so that the message stays on one line. */
export function say(text: string): void {
  process.stderr.write(`${oneLine(text)}\n`)
}

export const writeJson = (value: unknown): Promise<void> => write(`${JSON.stringify(value, null, 2)}\n`)

export const writeJsonLine = (value: unknown): Promise<void> => write(`${JSON.stringify(value)}\n`)

/** Returns the number of columns of the terminal, or Infinity if standard output is not a terminal. */
export const terminalWidth = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)
