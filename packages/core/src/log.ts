import { AsyncLocalStorage } from 'node:async_hooks'
import { iso, now } from './clock.ts'
import { config } from './config.ts'

/** Fields must not contain secrets or request bodies. */
export type LogFields = Record<string, unknown>

const levels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof levels)[number]

interface Trace extends LogFields {
  traceId: string
}

const storage = new AsyncLocalStorage<Trace>()

export const withTrace = <Result>(trace: Trace, work: () => Result): Result => storage.run({ ...trace }, work)

export const addLogFields = (fields: LogFields): void => {
  Object.assign(storage.getStore() ?? {}, fields)
}

/** Empty outside of a trace. */
export const currentTraceId = (): string => storage.getStore()?.traceId ?? ''

export function log(level: LogLevel, message: string, fields: LogFields = {}): void {
  if (levels.indexOf(level) < levels.indexOf(config.PLAT_LOG_LEVEL)) return
  const line = JSON.stringify({ time: iso(now()), level, message, ...storage.getStore(), ...fields }, serialiseErrors)
  process.stdout.write(`${escapeTerminal(line)}\n`)
}

/** The stack and the cause of an error are not enumerable, so JSON would omit them. */
function serialiseErrors(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  const { stack, cause } = value
  return { stack, cause: cause instanceof Error ? cause : undefined }
}

/** Escapes characters that JSON does not escape but that affect terminals or break lines. */
export const escapeTerminal = (line: string): string =>
  line.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
