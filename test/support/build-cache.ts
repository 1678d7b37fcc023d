import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { deserialize, serialize } from 'node:v8'
import { functionNames } from '@platform/core/updates/function-names'
import { bundleAll } from '../../scripts/bundle.ts'
import { filesOf, type buildFunctionFiles, packFunctions } from '../../scripts/release/functions.ts'
import { root, sources } from '../../scripts/source.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = join(root, 'node_modules/.cache/built-once')

const buildInputPattern = /^(?:packages|functions|scripts|infra|test\/simulator\/graph)\/|^package-lock\.json$/

function fingerprint(changedBy: string): string {
  const hash = createHash('sha256')
  for (const { path, text } of sources()) {
    if (buildInputPattern.test(path) || path === changedBy) hash.update(`${path}\0${text}\0`)
  }
  return hash.digest('hex').slice(0, 32)
}

function isGone(processId: string | undefined): boolean {
  try {
    return processId === undefined ? false : !process.kill(Number(processId), 0)
  } catch {
    return true
  }
}

async function lock(path: string): Promise<AsyncDisposable> {
  const draft = `${path}.${process.pid}.${randomUUID()}`
  // Creating and then writing a file would show other processes an empty lock.
  await writeFile(draft, String(process.pid))
  const isLocked = () => link(draft, path).catch(() => 'locked')
  while ((await isLocked()) !== undefined) {
    if (isGone(await readFile(path, 'utf8').catch(() => undefined))) await rm(path, { force: true })
    await delay(100)
  }
  await rm(draft)
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

/** Caches a build until its sources change. Concurrent builds with the same name wait for the first one. */
export async function buildOnce<Built>(name: string, changedBy: string, build: () => Promise<Built>): Promise<Built> {
  const file = `${name}-${fingerprint(changedBy)}`
  const find = () => readFile(join(folder, file)).catch(() => undefined)
  const cachedBuild = await find()
  if (cachedBuild !== undefined) return deserialize(cachedBuild)
  await mkdir(folder, { recursive: true })
  await using _ = await lock(join(folder, `${name}.lock`))
  const concurrentBuild = await find()
  if (concurrentBuild !== undefined) return deserialize(concurrentBuild)
  const newBuild = await build()
  const draft = join(folder, `${randomUUID()}.draft`)
  await writeFile(draft, serialize(newBuild))
  await rename(draft, join(folder, file))
  const outdatedFiles = (await readdir(folder)).filter((entry) => entry.startsWith(`${name}-`) && entry !== file)
  await Promise.all(outdatedFiles.map((entry) => rm(join(folder, entry), { force: true })))
  return newBuild
}

export const bundledFunctions = (): ReturnType<typeof bundleAll> =>
  buildOnce('bundles', '', () => bundleAll(functionNames, undefined))

export const deployedFunctions = (): ReturnType<typeof buildFunctionFiles> =>
  buildOnce('deployed', '', () => filesOf(bundledFunctions(), join(root, 'dist')))

export const packedFunctions = (version: string): ReturnType<typeof packFunctions> =>
  buildOnce(`packed-${version}`, '', async () => {
    await using folder = await temporaryFolder()
    return await packFunctions(version, folder.path)
  })
