import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { JsonObject } from '@platform/local/emulators/http/request'
import { unzipSync } from 'fflate'
import { invalidValue } from './errors.ts'
import type { Settings } from './function.ts'
import { nodeProgram } from './node-program.ts'

export interface Program {
  arguments: readonly string[]
  folder: string
  environment: Readonly<Record<string, string>>
}

/**
 * Thrown for code that can be prepared, but whose program cannot be started. Lambda reports this error for each
 * invocation.
 */
export class InvalidEntrypoint extends Error {
  override readonly name = 'InvalidEntrypoint'
}

export interface Code {
  packageType: 'Image' | 'Zip'
  sha256: string
  sizeBytes: number
  location: JsonObject
  /** Runs while a function is Pending or its update is InProgress. An error makes the function or the update Failed. */
  prepare: () => Promise<void>
  /** Throws `InvalidEntrypoint` if the program cannot be started. */
  program: (settings: Settings) => Promise<Program>
}

const nodeCode = (folder: string, sha256: string, sizeBytes: number, prepare: Code['prepare']): Code => ({
  packageType: 'Zip',
  sha256,
  sizeBytes,
  location: { RepositoryType: 'S3', Location: folder },
  prepare,
  program: async (settings) => nodeProgram(folder, settings),
})

export const folderBucket = 'folders'

/** Functions run the code directly from the folder, so its content must not change. */
export async function folderCode(root: string | undefined, bucket: string, key: string): Promise<Code> {
  const folder = join(root ?? '', key)
  const isOutside = root === undefined || relative(root, folder).split(sep)[0] === '..'
  const content = bucket === folderBucket && !isOutside ? await contentOf(folder).catch(() => undefined) : undefined
  if (content === undefined) throw invalidValue(`The object ${key} does not exist in the bucket ${bucket}.`)
  return nodeCode(folder, content.sha256, content.sizeBytes, async () => {})
}

async function contentOf(folder: string): Promise<{ sha256: string; sizeBytes: number }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const hash = createHash('sha256')
  let sizeBytes = 0
  for (const path of paths.toSorted()) {
    const content = await readFile(path)
    hash.update(JSON.stringify([relative(folder, path), content.length])).update(content)
    sizeBytes += content.length
  }
  return { sha256: hash.digest('base64'), sizeBytes }
}

export function zipCode(root: string | undefined, zip: Buffer): Code {
  if (root === undefined) throw invalidValue('No folder for zip files is configured.')
  const hash = createHash('sha256').update(zip).digest()
  const folder = join(root, hash.toString('hex'))
  const files = unzip(zip)
  return nodeCode(folder, hash.toString('base64'), zip.length, () => unpack(folder, files))
}

function unzip(zip: Buffer): [path: string, content: Uint8Array][] {
  try {
    return Object.entries(unzipSync(zip)).filter(([path]) => !path.endsWith('/'))
  } catch {
    throw invalidValue('Could not unzip uploaded file. Please check your file, then try to upload again.')
  }
}

/** Unpacks to a temporary folder and renames it, so that no partial content is visible. */
async function unpack(folder: string, files: readonly [string, Uint8Array][]): Promise<void> {
  const temporaryFolder = `${folder}.${randomUUID()}`
  for (const [path, content] of files) {
    const file = join(temporaryFolder, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
  }
  // An existing folder has the same content.
  await rename(temporaryFolder, folder).catch(() => rm(temporaryFolder, { recursive: true }))
}
