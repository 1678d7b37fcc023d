import { createHash } from 'node:crypto'
import { existsSync, globSync, statSync } from 'node:fs'
import { cp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))
// As deep as `packages/cli/src`: the command line finds the checkout and its version relative to its own files.
const cache = join(root, 'node_modules/.cache/plat')

/** Bundles the command line if its sources have changed. The bundle starts faster than the sources. */
export async function bundlePlat(): Promise<string> {
  const inputs = globSync('{package-lock.json,test/support/plat-bundle.ts,packages/*/{package.json,src/**/*.ts}}', {
    cwd: root,
  })
  const hash = createHash('sha256')
  for (const path of inputs.toSorted()) {
    const { mtimeMs, size } = statSync(join(root, path))
    hash.update(`${path} ${mtimeMs} ${size}\n`)
  }
  const folder = join(cache, hash.digest('hex').slice(0, 16))
  if (!existsSync(folder)) await bundleInto(folder)
  return join(folder, 'main.mjs')
}

async function bundleInto(folder: string): Promise<void> {
  const isOld = (path: string): boolean => Date.now() - statSync(path).mtimeMs > 86_400_000
  for (const path of globSync(join(cache, '*')).filter(isOld)) await rm(path, { recursive: true, force: true })
  const draft = `${folder}.${process.pid}`
  await build({
    entryPoints: [join(root, 'packages/cli/src/main.ts')],
    outdir: draft,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    external: ['esbuild'],
    // Libraries in CommonJS load modules of Node.js with `require`.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    logLevel: 'error',
  })
  await cp(join(root, 'packages/cli/package.json'), join(cache, 'package.json'))
  // Another worker may have created the bundle already.
  await rename(draft, folder).catch(() => rm(draft, { recursive: true }))
}
