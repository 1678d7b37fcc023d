import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Creates a folder with its parents, for its owner only. Node's recursive `mkdir` never returns for a path below `/proc`. */
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
