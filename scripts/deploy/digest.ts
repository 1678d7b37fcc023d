import { createHash } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { root } from '../source.ts'
import type { Settings } from './settings.ts'

const digestFile = 'deployment.json'

/** Files and folders, besides code and settings, that determine a deployed function. */
const configurationPaths = ['sst.config.ts', 'infra', 'packages/contract/src/task.ts'].map((name) => join(root, name))

/**
 * Writes a digest of the whole deployment into every built function, so that SST uploads all of them when anything
 * changes. SST compares with its own last upload and does not see later platform updates. The digest includes the
 * stage, so that stages share no file.
 */
export async function writeDeploymentDigest(
  folder: string,
  stage: string,
  settings: Settings['values'],
): Promise<void> {
  const digest = createHash('sha256').update(JSON.stringify([stage, settings]))
  const code = await filesIn(folder)
  for (const file of [...(await Promise.all(configurationPaths.map(filesIn))).flat(), ...code]) {
    digest.update(relative(file.startsWith(folder) ? folder : root, file)).update(await readFile(file))
  }
  const content = JSON.stringify({ deployment: digest.digest('hex') })
  const programs = code.filter((file) => basename(file) === 'index.mjs')
  for (const file of programs) await writeFile(join(dirname(file), digestFile), content)
}

/** Returns the files of a folder, recursively and sorted, without digest files. For a file, returns only its path. */
async function filesIn(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name !== digestFile)
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted((a, b) => (a < b ? -1 : 1))
}
