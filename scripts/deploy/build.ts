import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stop } from 'esbuild'
import { functionFiles } from '../release/functions.ts'

const distDir = join(import.meta.dirname, '../../dist')

/** Where the deployment takes functions from: a folder for each, `<name>/index.mjs`. */
export const functionsDir = join(distDir, 'functions')

/**
 * Builds every function as it is deployed. Answers how many there are.
 * Throws `Failure` when one cannot be bundled.
 */
export async function buildFunctions(folder = functionsDir): Promise<number> {
  const functions = await functionFiles(undefined, distDir)
  // It would keep a gigabyte for as long as this process runs.
  await stop()
  await writeFunctions(functions, folder)
  return functions.size
}

/** Puts the files of functions into a folder; the old one goes only once the new one is whole. */
export async function writeFunctions(
  functions: Awaited<ReturnType<typeof functionFiles>>,
  folder: string,
): Promise<void> {
  const draft = `${folder}.${process.pid}`
  for (const [name, files] of functions) {
    for (const [path, content] of Object.entries(files)) {
      const file = join(draft, name, path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, content)
    }
  }
  await rm(folder, { recursive: true, force: true })
  await rename(draft, folder)
}
