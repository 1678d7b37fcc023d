import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, warn } from './log.ts'

/**
 * Writes a file that only its owner may read. It is durable when this returns; a power loss before leaves the old
 * content.
 */
export function writeDurably(path: string, text: string): void {
  const draft = `${path}.draft`
  const descriptor = openSync(draft, 'w', 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(draft, path)
  syncFolder(dirname(path))
}

/** The text of a file, or undefined if it does not exist. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Removes the folder of a script as far as possible; files of other users remain. */
export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    warn(`A folder of a script could not be removed: ${messageOf(error)}`)
  }
}

/** Whether a system error has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** Makes the names in a folder durable. */
function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
