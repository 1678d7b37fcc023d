import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { escapeTerminal } from '@platform/core/log'

/** The file is renamed to `….1` at this size and replaces the one before, so the two use about twice this size. */
const defaultLimitBytes = 16 * 1024 * 1024
/** A failing function or module could otherwise flood the terminal. */
const maxShownErrorsPerMinute = 5
const maxShownCharacters = 200

/** Returns a function that appends to the file at once, so that a crash loses no line. It throws on I/O errors. */
function createAppender(path: string, limitBytes: number): (text: string) => void {
  let descriptor: number | undefined
  let bytes = 0
  const open = () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    descriptor = openSync(path, 'a', 0o600)
    bytes = fstatSync(descriptor).size
    return descriptor
  }
  const rotate = () => {
    if (descriptor === undefined || bytes < limitBytes) return
    closeSync(descriptor)
    descriptor = undefined
    renameSync(path, `${path}.1`)
  }
  return (text) => {
    rotate()
    bytes += writeSync(descriptor ?? open(), text)
  }
}

/** Returns the message of a line at level error, safe to print. */
function errorIn(line: string): string | undefined {
  if (!line.includes('"level":"error"')) return undefined
  try {
    const { level, message, module_id: module } = JSON.parse(line)
    const text = JSON.stringify([module, message].filter(Boolean).join(': ')).slice(1, -1)
    return level === 'error' ? escapeTerminal(text.slice(0, maxShownCharacters)) : undefined
  } catch {
    return undefined
  }
}

/**
 * Sends the log lines (JSON) of this process and its threads to a file. Other output, such as a crash report, stays on
 * the terminal. The terminal also shows the messages of at most five errors per minute.
 */
export function logToFile(path: string, limitBytes = defaultLimitBytes): void {
  const append = createAppender(path, limitBytes)
  const errorsAtMs: number[] = []

  const terminalTextOf = (message: string): string => {
    const nowMs = performance.now()
    while ((errorsAtMs[0] ?? nowMs) < nowMs - 60_000) errorsAtMs.shift()
    errorsAtMs.push(nowMs)
    if (errorsAtMs.length > maxShownErrorsPerMinute + 1) return ''
    return errorsAtMs.length > maxShownErrorsPerMinute
      ? `More errors are in ${path}\n`
      : `Error: ${message} (details in ${path})\n`
  }

  /** Returns the text for the terminal. */
  const divert = (text: string): string => {
    // Log lines are JSON; a printed object begins differently.
    if (!text.startsWith('{"')) return text
    const errors = text.split('\n').flatMap((line) => errorIn(line) ?? [])
    try {
      append(text)
    } catch (error) {
      errors.push(`The log cannot be written: ${error instanceof Error ? error.message : String(error)}`)
    }
    return errors.map(terminalTextOf).join('')
  }

  for (const stream of [process.stdout, process.stderr]) {
    const writeToTerminal = stream.write.bind(stream)
    stream.write = (chunk: string | Uint8Array, encoding?: unknown, callback?: unknown): boolean => {
      const terminalText = divert(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())
      if (terminalText !== '') writeToTerminal(terminalText)
      const done = typeof encoding === 'function' ? encoding : callback
      if (typeof done === 'function') done()
      return true
    }
  }
}
