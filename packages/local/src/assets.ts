import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { projectDir } from './settings.ts'

const run = promisify(execFile)

/** A built file that is handed out, and the files that it is built from. */
interface Asset {
  file: string
  /** Files, and folders with all that is below them. */
  sources: string[]
  build: (file: string) => Promise<void>
}

const contract = join(projectDir, 'packages/contract/src')
const document = join(projectDir, 'packages/contract/openapi.json')
const relay = join(projectDir, 'packages/relay/src')
const relayBuilder = join(projectDir, 'scripts/build-relay.ts')
const hello = join(projectDir, 'packages/hello/src')
const moduleSdk = join(projectDir, 'packages/modules/src/sdk')
const helloBuilder = join(projectDir, 'scripts/build-hello.ts')

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
]

/** Builds what is missing or older than its sources; of all files or of those that `wants` names. */
export async function buildAssets(assetsDir: string, wants?: readonly string[]): Promise<void> {
  await mkdir(assetsDir, { recursive: true })
  const wanted = assets.filter(({ file }) => wants?.includes(file) ?? true)
  const builds = wanted.map(async ({ file, sources, build }) => {
    const target = join(assetsDir, file)
    if ((await changedMs([target])) >= (await changedMs(sources))) return
    // Another platform that starts meanwhile never reads half a file.
    const draft = `${target}.${process.pid}`
    await build(draft)
    await rename(draft, target)
  })
  await Promise.all(builds)
}

/** When the newest of these was written; 0 when there is none. */
async function changedMs(paths: readonly string[]): Promise<number> {
  const times = paths.map(async (path) => {
    const entry = await stat(path).catch(() => undefined)
    if (entry === undefined) return 0
    if (!entry.isDirectory()) return entry.mtimeMs
    return changedMs((await readdir(path)).map((name) => join(path, name)))
  })
  return Math.max(0, ...(await Promise.all(times)))
}
