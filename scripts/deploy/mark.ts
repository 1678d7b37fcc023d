import { createHash } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { root } from '../source.ts'
import { type Settings } from './settings.ts'

const markFile = 'deployment.json'

/** What decides of functions beside their code and the settings. */
const configuration = ['sst.config.ts', 'infra', 'packages/contract/src/task.ts'].map((name) => join(root, name))

/**
 * Leaves a digest of the whole deployment in every built function, so that all are uploaded where anything has changed. SST
 * compares with what it has uploaded last, not with what releases have changed: a function whose code is the same would keep
 * that of a release, beside new code of others, or publish it with another setting. By the stage in it, stages share no file.
 */
export async function writeDeploymentDigest(folder: string, stage: string, set: Settings['set']): Promise<void> {
  const digest = createHash('sha256').update(JSON.stringify([stage, set]))
  const code = await filesIn(folder)
  for (const file of [...(await Promise.all(configuration.map(filesIn))).flat(), ...code]) {
    digest.update(relative(file.startsWith(folder) ? folder : root, file)).update(await readFile(file))
  }
  const mark = JSON.stringify({ deployment: digest.digest('hex') })
  const programs = code.filter((file) => basename(file) === 'index.mjs')
  for (const file of programs) await writeFile(join(dirname(file), markFile), mark)
}

/** The files of a folder and of those in it, but for marks, in an order of their own; a file is its only one. */
async function filesIn(place: string): Promise<string[]> {
  if (!(await stat(place)).isDirectory()) return [place]
  const entries = await readdir(place, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name !== markFile)
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted((one, other) => (one < other ? -1 : 1))
}
