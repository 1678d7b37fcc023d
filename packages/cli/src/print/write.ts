import { once } from 'node:events'
import { oneLine } from './text.ts'

/** Writes to standard output and waits for a slow reader. */
export async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Writes to standard error and waits for a slow reader. */
export async function writeError(text: string): Promise<void> {
  if (text !== '' && !process.stderr.write(text)) await once(process.stderr, 'drain')
}

/** Prints a line on standard error. */
export function say(text: string): void {
  process.stderr.write(`${oneLine(text)}\n`)
}

export const writeJson = (value: unknown): Promise<void> => write(`${JSON.stringify(value, null, 2)}\n`)

/** Prints one line of NDJSON. */
export const writeJsonLine = (value: unknown): Promise<void> => write(`${JSON.stringify(value)}\n`)

/** The width of the terminal; Infinity without one. */
export const terminalWidth = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)
