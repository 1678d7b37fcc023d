import { isoNow } from './clock.ts'
import { messageOf } from './message.ts'

/** What a line tells beside its message. Never a secret. */
export type LogFields = Readonly<Record<string, unknown>>

/** Writes lines of JSON: `time`, `level`, `message`, `category`, `module_id`, `module_version`, then the fields. */
export interface Logger {
  debug: (message: string, fields?: LogFields) => void
  info: (message: string, fields?: LogFields) => void
  warn: (message: string, fields?: LogFields) => void
  error: (message: string, fields?: LogFields) => void
}

const levels = ['debug', 'info', 'warn', 'error'] as const

/** A logger for one part of a module. */
export function loggerOf(module: { id: string; version: string }, category: string): Logger {
  const write = (level: (typeof levels)[number]) => (message: string, fields?: LogFields) => {
    const own = { time: isoNow(), level, message, category, module_id: module.id, module_version: module.version }
    process.stdout.write(`${lineOf(own, fields)}\n`)
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

/** Logging never throws: where the fields are no JSON, the line says so instead. */
function lineOf(own: LogFields, fields: LogFields = {}): string {
  try {
    // What the platform reads cannot be overwritten by a field.
    return escapeTerminal(JSON.stringify({ ...own, ...fields, ...own }, spell))
  } catch (error) {
    return escapeTerminal(JSON.stringify({ ...own, unloggable: messageOf(error) }))
  }
}

/** Errors have no enumerable members, and big integers no form in JSON. */
function spell(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (!(value instanceof Error)) return value
  return value.cause === undefined ? { stack: value.stack } : { stack: value.stack, cause: value.cause }
}

/** JSON escapes C0 controls only; these too would act on a terminal or break a line. */
const escapeTerminal = (line: string): string =>
  line.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
