import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stop } from 'esbuild'
import { buildFunctionFiles } from '../release/functions.ts'

const distDir = join(import.meta.dirname, '../../dist')

/** Folder of the built functions: `<name>/index.mjs`. */
export const functionsDir = join(distDir, 'functions')

/** Builds every function as deployed. Returns the number of functions. Throws `CliError` if one cannot be bundled. */
export async function buildFunctions(folder = functionsDir): Promise<number> {
  const functions = await buildFunctionFiles(undefined, distDir)
  // Otherwise the esbuild service keeps its memory until this process ends.
  await stop()
  await writeFunctions(functions, folder)
  return functions.size
}

/** Writes the functions to a folder. Removes the old folder only after the new one is complete. */
export async function writeFunctions(
  functions: Awaited<ReturnType<typeof buildFunctionFiles>>,
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
