import { DatabaseSync } from 'node:sqlite'

/** SQLite's error code for a locked file. */
const busy = 5

/**
 * Takes a lock of the operating system through SQLite, which ends with the process. Blocks the process for up to
 * `waitMs`. Returns undefined if the lock is taken; dispose to release it.
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
