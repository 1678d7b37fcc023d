import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A folder for the tests of a file, removed after them. Ask for it before the store that uses it. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dynamodb-'))
  afterAll(() => rm(folder, { recursive: true }))
  return folder
}
