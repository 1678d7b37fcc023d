import { once } from 'node:events'
import { oneLine } from './text.ts'

/** Writes to standard output and waits while its reader is slower. */
export async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Writes to standard error and waits while its reader is slower: what scripts wrote there. */
export async function writeError(text: string): Promise<void> {
  if (text !== '' && !process.stderr.write(text)) await once(process.stderr, 'drain')
}

/** Tells a person something on standard error, in one line. */
export function say(text: string): void {
  process.stderr.write(`${oneLine(text)}\n`)
}

/** Prints a value as the one JSON document of a command. */
export const writeJson = (value: unknown): Promise<void> => write(`${JSON.stringify(value, null, 2)}\n`)

/** Prints a value as one line of NDJSON. */
export const writeJsonLine = (value: unknown): Promise<void> => write(`${JSON.stringify(value)}\n`)

/** The columns of the terminal that standard output is; no limit where it is none. */
export const terminalWidth = (): number => (process.stdout.isTTY ? process.stdout.columns || 80 : Infinity)
