import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Unzipped, unzipSync } from 'fflate'
import type { Code } from './code.ts'
import { nodeProgram } from './node-program.ts'
import { invalidValue } from './refusals.ts'

/** Lambda's limits for a zip in a request and for its content. */
const maximumZipBytes = 50 * 1024 * 1024
const maximumContentBytes = 250 * 1024 * 1024

export function zipCode(root: string | undefined, zip: Buffer): Code {
  if (root === undefined) throw invalidValue('No folder for zip files is configured.')
  if (zip.length > maximumZipBytes) throw invalidValue(`The zip file must be smaller than ${maximumZipBytes} bytes.`)
  const files = Object.entries(unzipped(zip)).filter(([path]) => !path.endsWith('/'))
  if (files.length === 0) throw invalidValue('Uploaded file must be a non-empty zip')
  const hash = createHash('sha256').update(zip).digest()
  const folder = join(root, hash.toString('hex'))
  if (files.some(([path]) => relative(folder, join(folder, path)).startsWith('..'))) throw unusable()
  return {
    packageType: 'Zip',
    sha256: hash.toString('base64'),
    sizeBytes: zip.length,
    location: { RepositoryType: 'S3', Location: folder },
    prepare: () => place(folder, files),
    program: async (settings) => nodeProgram(folder, settings),
  }
}

const unusable = () => invalidValue('Could not unzip uploaded file. Please check your file, then try to upload again.')

function unzipped(zip: Buffer): Unzipped {
  let leftBytes = maximumContentBytes
  const fits = ({ originalSize }: { originalSize: number }): boolean => (leftBytes -= originalSize) >= 0
  const files = attempt(() => unzipSync(zip, { filter: fits }))
  if (leftBytes < 0) throw invalidValue(`Unzipped size must be smaller than ${maximumContentBytes} bytes`)
  if (files === undefined) throw unusable()
  return files
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** Unpacks to a temporary folder and renames it, so that no partial content is visible. */
async function place(folder: string, files: readonly [string, Uint8Array][]): Promise<void> {
  const beside = `${folder}.${randomUUID()}`
  for (const [path, content] of files) {
    const file = join(beside, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, content)
  }
  // An existing folder has the same content.
  await rename(beside, folder).catch(() => rm(beside, { recursive: true }))
}
