import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { packFunctions } from '../../scripts/release/functions.ts'
import { root, sources } from '../../scripts/source.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = join(root, 'node_modules/.cache/built-once')

/** What is bundled, and what bundles it. */
const isOfBuild = /^(?:packages|functions|scripts|infra|rehearsal\/graph)\/|^package-lock\.json$/

/** Stands for the content of all that the functions are built of, and for the file of the test that changes it. */
function fingerprint(changedBy: string): string {
  const hash = createHash('sha256')
  for (const { path, text } of sources()) {
    if (isOfBuild.test(path) || path === changedBy) hash.update(`${path}\0${text}\0`)
  }
  return hash.digest('hex').slice(0, 32)
}

/**
 * What a build makes, once for all test files and runs until a source changes: bundling every function takes many seconds.
 * `changedBy` is the path of the file whose code has a part in it. Two that begin at once both build, and write the same.
 */
export async function builtOnce<Built>(name: string, changedBy: string, build: () => Promise<Built>): Promise<Built> {
  const file = `${name}-${fingerprint(changedBy)}`
  const kept = await readFile(join(folder, file)).catch(() => undefined)
  if (kept !== undefined) return deserialize(kept)
  const built = await build()
  await mkdir(folder, { recursive: true })
  const draft = join(folder, `${process.pid}.draft`)
  await writeFile(draft, serialize(built))
  await rename(draft, join(folder, file))
  const others = (await readdir(folder)).filter((other) => other.startsWith(`${name}-`) && other !== file)
  await Promise.all(others.map((other) => rm(join(folder, other), { force: true })))
  return built
}

/** The code of a version of the platform, as `npm run release` packs it. */
export const packedFunctions = (version: string): ReturnType<typeof packFunctions> =>
  builtOnce(`packed-${version}`, '', async () => {
    await using folder = await temporaryFolder()
    return await packFunctions(version, folder.path)
  })
