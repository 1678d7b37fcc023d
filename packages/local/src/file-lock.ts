import { DatabaseSync } from 'node:sqlite'

/** What SQLite calls a file that somebody else has locked. */
const busy = 5

/**
 * Takes a lock of the operating system, held through SQLite: unlike a file with a process id it ends with the process. Waits
 * for it as long as told, and the whole process with it. Undefined when somebody else keeps it; disposing lets go.
 */
export function lockFile(path: string, waitMs = 0): Disposable | undefined {
  const lock = new DatabaseSync(path, { timeout: waitMs })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === busy) return undefined
    throw error
  }
  return { [Symbol.dispose]: () => lock.close() }
}
