import { readdir } from 'node:fs/promises'
import { relative, sep } from 'node:path'

/** Returns names relative to the folder, such as `jobs`, `queue/batches` and `schedule/sweep`. */
export async function listFunctionNames(functionsDir: string): Promise<string[]> {
  const entries = await readdir(functionsDir, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => [relative(functionsDir, entry.parentPath), entry.name.slice(0, -3)].filter(Boolean).join('/'))
    .map((name) => name.replaceAll(sep, '/'))
    .toSorted()
}
