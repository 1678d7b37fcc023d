import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure } from '@platform/cli/exit'
import { functionNames } from '@platform/core/function-names'
import { buildAssets } from '@platform/local/assets'
import type { Plugin } from 'esbuild'
import { bundleAll } from '../bundle.ts'
import { type Files, zipOf } from './zip.ts'

/** The built files that a function hands out, from `dist` beside its code. */
export const handedOut: Readonly<Record<string, readonly string[]>> = {
  meta: ['docs.html', 'event-catalog.json', 'module-schema.json', 'openapi.json', 'relay.mjs'],
}

/** The code of a version, a zip for each function: `index.mjs`, and `dist` with what it hands out. `workFolder` is empty, `changes` as for `bundleAll`. */
export async function packFunctions(
  version: string,
  workFolder: string,
  changes: readonly Plugin[] = [],
): Promise<Map<string, Uint8Array>> {
  const [programs] = await Promise.all([
    bundleAll(functionNames, version, changes).catch((cause: unknown) => {
      throw new Failure('refused', 'The functions cannot be bundled. What is wrong stands above.', cause)
    }),
    buildAssets(workFolder, Object.values(handedOut).flat()),
  ])
  const zips = new Map<string, Uint8Array>()
  for (const [name, program] of [...programs].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    const files = { 'index.mjs': program, ...(await assetsOf(name, workFolder)) }
    zips.set(name, zipOf(files))
  }
  return zips
}

async function assetsOf(functionName: string, folder: string): Promise<Files> {
  const names = handedOut[functionName] ?? []
  const entries = names.map(async (name) => [`dist/${name}`, await readFile(join(folder, name))] as const)
  return Object.fromEntries(await Promise.all(entries))
}
