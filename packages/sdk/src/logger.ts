import { isoNow } from './clock.ts'
import { messageOf } from './message.ts'

/** Additional fields of a log line. They must not contain secrets. */
export type LogFields = Readonly<Record<string, unknown>>

/** Writes JSON lines: `time`, `level`, `message`, `category`, `module_id`, `module_version`, then the fields. */
export interface Logger {
  debug: (message: string, fields?: LogFields) => void
  info: (message: string, fields?: LogFields) => void
  warn: (message: string, fields?: LogFields) => void
  error: (message: string, fields?: LogFields) => void
}

const levels = ['debug', 'info', 'warn', 'error'] as const

/** Creates a logger for one category of a module. It writes to standard output. */
export function loggerOf(module: { id: string; version: string }, category: string): Logger {
  const writerFor = (level: (typeof levels)[number]) => (message: string, fields?: LogFields) => {
    const reservedFields = {
      time: isoNow(),
      level,
      message,
      category,
      module_id: module.id,
      module_version: module.version,
    }
    process.stdout.write(`${lineOf(reservedFields, fields)}\n`)
  }
  return { debug: writerFor('debug'), info: writerFor('info'), warn: writerFor('warn'), error: writerFor('error') }
}

// Logging must never throw. If the fields cannot be serialised, the line contains the error in `unloggable`.
function lineOf(reservedFields: LogFields, fields: LogFields = {}): string {
  try {
    // The reserved members come first in the line, and again last because fields must not overwrite them.
    return escapeTerminal(JSON.stringify({ ...reservedFields, ...fields, ...reservedFields }, toJsonValue))
  } catch (error) {
    return escapeTerminal(JSON.stringify({ ...reservedFields, unloggable: messageOf(error) }))
  }
}

// `JSON.stringify` omits the message and stack of errors, and throws for bigint values.
function toJsonValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (!(value instanceof Error)) return value
  return value.cause === undefined ? { stack: value.stack } : { stack: value.stack, cause: value.cause }
}

// JSON escapes only C0 control characters; the characters below also affect terminals or break lines.
const escapeTerminal = (line: string): string =>
  line.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
