import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { projectDir } from './project-dir.ts'
import { StartError } from './start-error.ts'

const run = promisify(execFile)

interface Asset {
  file: string
  /** Files, and folders with all files below them. */
  sources: string[]
  build: (file: string) => Promise<void>
}

const contract = join(projectDir, 'packages/contract/src')
const document = join(projectDir, 'packages/contract/openapi.json')
const relay = join(projectDir, 'packages/relay/src')
const relayBuilder = join(projectDir, 'scripts/build-relay.ts')
const hello = join(projectDir, 'packages/hello/src')
const moduleSdk = join(projectDir, 'packages/sdk/src')
const helloBuilder = join(projectDir, 'scripts/build-hello.ts')
const portalSources = [
  'src',
  'public',
  'index.html',
  'icons.ts',
  'vite.config.ts',
  'tsconfig.json',
  'package.json',
].map((name) => join(projectDir, 'packages/portal', name))
const portalPack = join(projectDir, 'packages/http/src/portal/pack.ts')
const portalBuilder = join(projectDir, 'scripts/build-portal.ts')
const lockFile = join(projectDir, 'package-lock.json')

const assets: readonly Asset[] = [
  {
    file: 'openapi.json',
    sources: [document],
    build: async (file) => writeFile(file, await readFile(document, 'utf8')),
  },
  {
    file: 'docs.html',
    sources: [document, contract],
    build: async (file) => {
      const { docsPage } = await import('@platform/contract/docs')
      await writeFile(file, docsPage(JSON.parse(await readFile(document, 'utf8'))))
    },
  },
  {
    file: 'event-catalog.json',
    sources: [contract],
    build: async (file) => {
      const { eventCatalog } = await import('@platform/contract/event-catalog')
      await writeFile(file, JSON.stringify(eventCatalog()))
    },
  },
  {
    file: 'module-schema.json',
    sources: [contract],
    build: async (file) => {
      const { manifestJsonSchema } = await import('@platform/contract/manifest')
      await writeFile(file, JSON.stringify(manifestJsonSchema()))
    },
  },
  {
    file: 'relay.mjs',
    sources: [relay, relayBuilder],
    build: async (file) => void (await run(process.execPath, [relayBuilder, file])),
  },
  {
    file: 'hello.mjs',
    sources: [hello, moduleSdk, helloBuilder],
    build: async (file) => void (await run(process.execPath, [helloBuilder, file])),
  },
  {
    file: 'portal.pack',
    sources: [...portalSources, contract, portalPack, portalBuilder, lockFile],
    build: async (file) => void (await run(process.execPath, [portalBuilder, file])),
  },
]

interface AssetOptions {
  /** Names of the files to build; all by default. */
  names?: readonly string[]
  /** Called if a file cannot be rebuilt and the old file is used. Without this callback, `buildAssets` rejects. */
  onOutdated?: (file: string, error: unknown) => void
}

/** Name of the file that marks a package, which contains all built assets but no tools to build them. */
export const packageMarker = 'packaged'

export const assetFiles: readonly string[] = assets.map(({ file }) => file)

const isPackaged = existsSync(join(projectDir, 'dist', packageMarker))

/** Throws `StartError` in a checkout without esbuild, that is, without the development packages that build assets. */
export function requireBuildTools(): void {
  if (isPackaged || existsSync(join(projectDir, 'node_modules/esbuild'))) return
  throw new StartError(
    'This checkout was installed without the development packages that build its files: run npm ci, or use the tarball ' +
      'of npm run package, which is already built.',
  )
}

/** Builds the files that are missing or older than their sources. Does nothing in a package. */
export async function buildAssets(assetsDir: string, { names, onOutdated }: AssetOptions = {}): Promise<void> {
  if (isPackaged) return
  await mkdir(assetsDir, { recursive: true })
  const selectedAssets = assets.filter(({ file }) => names?.includes(file) ?? true)
  const builds = selectedAssets.map(async ({ file, sources, build }) => {
    const target = join(assetsDir, file)
    const builtAtMs = await lastModifiedMs([target])
    if (builtAtMs >= (await lastModifiedMs(sources))) return
    try {
      await replace(target, build)
    } catch (error) {
      if (builtAtMs === 0 || onOutdated === undefined) throw error
      onOutdated(file, error)
    }
  })
  await Promise.all(builds)
}

/**
 * Replaces the file atomically, because platforms may start at the same time. The modification time of the file is the
 * start of the build, so that the next start rebuilds the file if a source has changed during the build.
 */
async function replace(target: string, build: Asset['build']): Promise<void> {
  const draft = `${target}.${randomUUID()}`
  const startedAt = new Date()
  try {
    await build(draft)
    await utimes(draft, startedAt, startedAt)
    await rename(draft, target)
  } finally {
    await rm(draft, { force: true })
  }
}

/** Copies all assets to `folder`, so that later builds do not affect a running platform. */
export async function pinAssets(assetsDir: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await Promise.all(assets.map(({ file }) => copyFile(join(assetsDir, file), join(folder, file))))
}

/** Returns the newest modification time of the files at or below the paths; 0 if there are none. */
async function lastModifiedMs(paths: readonly string[]): Promise<number> {
  const times = paths.map(async (path) => {
    const entry = await stat(path).catch(() => undefined)
    if (entry === undefined) return 0
    if (!entry.isDirectory()) return entry.mtimeMs
    return lastModifiedMs((await readdir(path)).map((name) => join(path, name)))
  })
  return Math.max(0, ...(await Promise.all(times)))
}
