import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError } from '@platform/cli/exit'
import { functionNames } from '@platform/core/updates/function-names'
import { buildAssets } from '@platform/local/assets'
import type { Plugin } from 'esbuild'
import { buildRelay, type RelayRelease } from '../build-relay.ts'
import { type Bundle, bundleAll } from '../bundle.ts'
import { type Files, zipOf } from './zip.ts'

/** Built assets that a function serves from `dist` beside its code. */
export const servedAssets: Readonly<Record<string, readonly string[]>> = {
  meta: ['docs.html', 'event-catalog.json', 'module-schema.json', 'openapi.json', 'relay.mjs'],
  portal: ['portal.pack'],
}

/**
 * Returns the files of every function: `index.mjs`, its lazily loaded chunks, and served assets in `dist`. Writes the
 * assets to `assetsDir`. `bundleAll` describes `version` and `changes`. Throws `CliError` if the functions cannot be
 * bundled.
 */
export async function buildFunctionFiles(
  version: string | undefined,
  assetsDir: string,
  changes: readonly Plugin[] = [],
): Promise<Map<string, Files>> {
  const bundles = bundleAll(functionNames, version, changes).catch((cause: unknown) => {
    throw new CliError('refused', 'The functions cannot be bundled. See the errors above.', cause)
  })
  return filesOf(bundles, assetsDir)
}

export async function filesOf(bundling: Promise<Map<string, Bundle>>, assetsDir: string): Promise<Map<string, Files>> {
  const [bundles] = await Promise.all([bundling, buildAssets(assetsDir, { names: Object.values(servedAssets).flat() })])
  const files = new Map<string, Files>()
  for (const [name, bundle] of [...bundles].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    files.set(name, { ...Object.fromEntries(bundle.files), ...(await assetsOf(name, assetsDir)) })
  }
  return files
}

/**
 * Packs the functions of a version into one zip each. `workFolder` must be empty; `bundleAll` describes `changes`. The
 * packed relay verifies its updates with `publicKeyPem`; without this key, the relay cannot update itself. Throws
 * `CliError` if the functions cannot be bundled.
 */
export async function packFunctions(
  version: string,
  workFolder: string,
  changes: readonly Plugin[] = [],
  publicKeyPem?: string,
): Promise<Map<string, Uint8Array>> {
  const files = await buildFunctionFiles(version, workFolder, changes)
  if (publicKeyPem !== undefined) await replaceRelay(files, workFolder, { version, publicKeyPem })
  return new Map([...files].map(([name, each]) => [name, zipOf(each)]))
}

/** Name of the relay's file in the work folder. */
export const relayFile = 'relay.mjs'

/** Replaces the relay that `meta` serves with the relay of a release. */
export async function replaceRelay(
  files: Map<string, Files>,
  workFolder: string,
  release: RelayRelease,
): Promise<void> {
  const path = join(workFolder, relayFile)
  await buildRelay(path, release)
  files.set('meta', { ...files.get('meta'), 'dist/relay.mjs': await readFile(path) })
}

async function assetsOf(functionName: string, folder: string): Promise<Files> {
  const names = servedAssets[functionName] ?? []
  const entries = names.map(async (name) => [`dist/${name}`, await readFile(join(folder, name))] as const)
  return Object.fromEntries(await Promise.all(entries))
}
