import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Writes a file that only its owner can read. The content is durable when the function returns. If the power fails
 * earlier, the file has either its old or its new content.
 */
export function writeDurably(path: string, text: string): void {
  const draft = `${path}.draft`
  const descriptor = openSync(draft, 'w', 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  } finally {
    closeSync(descriptor)
  }
  renameSync(draft, path)
  syncFolder(dirname(path))
}

/** Returns the text of a file, or undefined if the file does not exist. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Whether a system error has this code, such as `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

// The new name of a file is durable only after an fsync of its folder.
function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
