import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Creates a folder and its parents, for the owner only. Node's recursive `mkdir` never returns for paths in /proc. */
export function makeFolder(path: string): void {
  const folder = resolve(path)
  if (existsSync(folder)) return
  if (!existsSync(dirname(folder))) makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (!existsSync(folder)) throw error
  }
}
