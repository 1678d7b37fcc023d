/** What a store that fails lets a platform say. */
const ofFaults =
  /Throughput|Throttling|TimeoutError|ECONNRESET|EPIPE|socket hang up|TransactionConflict|TransactionCanceled|database_unavailable|did not respond|Too many requests changed/

interface Line {
  level?: string
  message?: string
}

const parse = (text: string): Line | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Lines of an error that no fault of the store explains, and all that is no line of the log at all. */
export const unexplained = (log: string): string[] =>
  log.split('\n').filter((text) => {
    if (text === '' || ofFaults.test(text)) return false
    const line = parse(text)
    return line === undefined ? !isOfStart(text) : line.level === 'error'
  })

/** What the platform tells a person who starts it. */
const isOfStart = (text: string): boolean =>
  /^(?:Starting the platform|Platform ready|  )/.test(text) || !/rror|reject|Warning|    at /.test(text)

/** Rejections that nobody has handled, and exceptions that nobody has caught. */
export const unhandled = (log: string): string[] =>
  log.split('\n').filter((text) => /unhandled ?rejection|uncaught|MaxListenersExceeded/i.test(text))
