/** Writes one log line. Errors in the details keep their stack. */
export type Log = (message: string, details?: Record<string, unknown>) => void

const withStack = (_key: string, value: unknown): unknown =>
  value instanceof Error ? { name: value.name, message: value.message, stack: value.stack } : value

/** Writes JSON lines in the format of the functions' log, but to standard error. */
export const logToStandardError: Log = (message, details = {}) => {
  const line = { time: new Date().toISOString(), level: 'warn', source: 'runner', message, ...details }
  process.stderr.write(`${JSON.stringify(line, withStack)}\n`)
}
