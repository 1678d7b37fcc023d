import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { Code } from './code.ts'
import { nodeProgram } from './node-program.ts'
import { invalidValue } from './refusals.ts'

export const folderBucket = 'folders'

/** A folder instead of a zip file. It runs in place, so it must not change. The handler is `<file>.<export>`. */
export async function folderCode(root: string | undefined, bucket: string, key: string): Promise<Code> {
  const folder = join(root ?? '', key)
  if (root === undefined || bucket !== folderBucket || isOutside(root, folder)) throw absent(bucket, key)
  const { sha256, sizeBytes } = await contentOf(folder).catch(() => {
    throw absent(bucket, key)
  })
  return {
    packageType: 'Zip',
    sha256,
    sizeBytes,
    location: { RepositoryType: 'S3', Location: folder },
    prepare: async () => {},
    program: async (settings) => nodeProgram(folder, settings),
  }
}

const absent = (bucket: string, key: string) => invalidValue(`There is no object ${key} in the bucket ${bucket}.`)

const isOutside = (root: string, folder: string): boolean => relative(root, folder).split(sep)[0] === '..'

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
