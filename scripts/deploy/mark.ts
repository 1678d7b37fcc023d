import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../source.ts'
import { type Settings } from './settings.ts'

const byText = (one: string, other: string): number => (one < other ? -1 : 1)

/**
 * Leaves in every built function what its surroundings are: settings and configuration. Lambda publishes a change of those with
 * the code that was uploaded last, which may be that of a release that was taken back; changed code is uploaded with them.
 */
export async function markFunctions(folder: string, set: Settings['set']): Promise<void> {
  const files = (await readdir(join(root, 'infra'))).filter((name) => name.endsWith('.ts')).toSorted(byText)
  const digest = createHash('sha256').update(JSON.stringify(set))
  for (const file of ['sst.config.ts', ...files.map((name) => `infra/${name}`)])
    digest.update(file).update(await readFile(join(root, file)))
  const mark = JSON.stringify({ surroundings: digest.digest('hex') })
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.name === 'index.mjs') await writeFile(join(entry.parentPath, 'deployment.json'), mark)
  }
}
