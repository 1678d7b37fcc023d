import { DatabaseSync } from 'node:sqlite'

const busyErrorCode = 5

/**
 * Takes an operating system lock through SQLite; the lock ends with the process. Blocks the thread for up to `waitMs`.
 * Returns undefined if another process has the lock. Dispose the result to release it.
 */
export function lockFile(path: string, waitMs = 0): Disposable | undefined {
  const lock = new DatabaseSync(path, { timeout: waitMs })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === busyErrorCode) return undefined
    throw error
  }
  return { [Symbol.dispose]: () => lock.close() }
}
