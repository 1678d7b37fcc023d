import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Writes a file that only its owner may read. After a crash it has the complete old or the complete new text. */
export function writeDurably(path: string, text: string): void {
  const temporaryPath = `${path}.tmp`
  const file = openSync(temporaryPath, 'w', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporaryPath, path)
  syncFolder(dirname(path))
}

/** A rename is durable only after its folder is synced. */
export function syncFolder(path: string) {
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
