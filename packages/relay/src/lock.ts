import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { hasCode, readIfPresent } from './files.ts'
import { parseJsonObject } from './json.ts'
import { isAlive, stampOf } from './process-group.ts'

/**
 * Locks the state folder against a second relay and returns a function that releases the lock. Replaces the lock of a
 * relay that has ended. Throws `FatalError` if another relay is running.
 */
export function lockState(folder: string): () => void {
  const path = join(folder, 'lock')
  const ownPath = `${path}.${process.pid}`
  try {
    writeFileSync(ownPath, JSON.stringify({ pid: process.pid, stamp: stampOf(process.pid) }), { mode: 0o600 })
    while (!tryLink(ownPath, path)) clearStaleLock(path, folder)
  } finally {
    rmSync(ownPath, { force: true })
  }
  return () => rmSync(path, { force: true })
}

function tryLink(ownPath: string, path: string): boolean {
  try {
    // Creating a link is atomic, so no relay reads a partly written lock.
    linkSync(ownPath, path)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

function clearStaleLock(path: string, folder: string): void {
  requireStale(readIfPresent(path), folder)
  const stalePath = `${path}.${process.pid}.stale`
  try {
    // If two relays find the same stale lock, the second one may move the new lock, so the moved file is checked again.
    renameSync(path, stalePath)
    requireStale(readIfPresent(stalePath), folder)
    rmSync(stalePath)
  } catch (error) {
    if (error instanceof FatalError) renameSync(stalePath, path)
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

function requireStale(lock: string | undefined, folder: string): void {
  const { pid, stamp } = parseJsonObject(lock ?? '') ?? {}
  if (typeof pid === 'number' && typeof stamp === 'string' && isAlive({ pid, stamp })) {
    throw new FatalError(
      'stateInUse',
      `Another relay (process ${pid}) uses ${folder}. Stop it, or use another --state-dir.`,
    )
  }
}
