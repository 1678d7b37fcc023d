import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { hasCode, readIfPresent } from './files.ts'
import { parseJsonObject } from './json.ts'
import { isAlive, stampOf } from './process-group.ts'

/**
 * Keeps a second relay off the state folder. Returns what gives the lock back. The lock of a relay that is dead is taken
 * over; throws `Fatal` while one lives.
 */
export function lockState(folder: string): () => void {
  const path = join(folder, 'lock')
  const mine = `${path}.${process.pid}`
  writeFileSync(mine, JSON.stringify({ pid: process.pid, stamp: stampOf(process.pid) }), { mode: 0o600 })
  try {
    while (!claimed(mine, path)) clearStaleLock(path, folder)
  } finally {
    rmSync(mine, { force: true })
  }
  return () => rmSync(path, { force: true })
}

function claimed(mine: string, path: string): boolean {
  try {
    // A link appears at once and whole: nobody reads a lock that is half written.
    linkSync(mine, path)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

function clearStaleLock(path: string, folder: string): void {
  requireDead(readIfPresent(path), folder)
  const moved = `${path}.${process.pid}.stale`
  try {
    // Of two relays that find the same stale lock, one moves it; the other may move the lock that replaced it.
    renameSync(path, moved)
    requireDead(readIfPresent(moved), folder)
    rmSync(moved)
  } catch (error) {
    if (error instanceof FatalError) renameSync(moved, path)
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

function requireDead(lock: string | undefined, folder: string): void {
  const { pid, stamp } = parseJsonObject(lock ?? '') ?? {}
  if (typeof pid === 'number' && typeof stamp === 'string' && isAlive({ pid, stamp })) {
    throw new FatalError(
      'stateInUse',
      `Another relay (process ${pid}) uses ${folder}. Stop it, or name another --state-dir.`,
    )
  }
}
