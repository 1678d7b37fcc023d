import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { pack } from 'tar-stream'
import { digestOf } from './digest.ts'
import { normalizePath, parentOf, whiteoutOf } from './image-path.ts'
import { type Descriptor, mediaTypes } from './types.ts'

/** A file of an image: its content, or the path of a local file or folder. The default mode is 644. */
export type FileToPack = { path: string; mode?: number } & ({ content: string | Uint8Array } | { source: string })

/** A layer to push: its bytes, or the repository of the same registry that has it. */
export type BuiltLayer = { descriptor: Descriptor; diffId: string } & ({ bytes: Buffer } | { repository: string })

interface PackedFile {
  content: Uint8Array
  mode: number
}

/**
 * Packs files into a layer. The same files give the same bytes at any time and in any order: timestamps and owners are
 * zero, and names are sorted. Another version of Node.js or another CPU architecture may compress the same content to
 * other bytes. Throws `TypeError` for links, special files, conflicting paths and whiteouts.
 */
export async function packLayer(files: readonly FileToPack[]): Promise<BuiltLayer & { bytes: Buffer }> {
  const packedFiles = new Map<string, PackedFile>()
  for (const file of files) await collect(file, packedFiles)
  const tar = await tarOf(packedFiles)
  const bytes = await promisify(gzip)(tar, { level: 6 })
  // The operating system in the gzip header depends on the machine; 255 means unknown.
  bytes[9] = 255
  const descriptor = { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length }
  return { descriptor, diffId: digestOf(tar), bytes }
}

async function collect(file: FileToPack, packedFiles: Map<string, PackedFile>): Promise<void> {
  const path = normalizePath(file.path)
  if ('source' in file) {
    const stats = await lstat(file.source)
    if (stats.isDirectory()) {
      for (const name of await readdir(file.source)) {
        await collect({ ...file, path: `${path}/${name}`, source: join(file.source, name) }, packedFiles)
      }
      return
    }
    if (!stats.isFile()) throw new TypeError(`${file.source} is neither a file nor a folder.`)
  }
  if (path === '' || packedFiles.has(path)) throw new TypeError(`There are two files for /${path}, or it is a folder.`)
  if (path.split('/').some((part) => whiteoutOf(part) !== undefined)) throw new TypeError(`/${path} would hide files.`)
  const content = 'source' in file ? await readFile(file.source) : Buffer.from(file.content)
  packedFiles.set(path, { content, mode: (file.mode ?? 0o644) & 0o777 })
}

async function tarOf(packedFiles: ReadonlyMap<string, PackedFile>): Promise<Buffer> {
  const directories = new Set<string>()
  for (const path of packedFiles.keys()) {
    for (let directory = parentOf(path); directory !== ''; directory = parentOf(directory)) directories.add(directory)
  }
  const archive = pack()
  const common = { mtime: new Date(0), uid: 0, gid: 0 }
  for (const path of [...packedFiles.keys(), ...directories].toSorted(compareCodeUnits)) {
    const file = packedFiles.get(path)
    if (file !== undefined && directories.has(path)) throw new TypeError(`/${path} is a file and a folder.`)
    if (file === undefined) archive.entry({ ...common, name: `${path}/`, type: 'directory', mode: 0o755 })
    else archive.entry({ ...common, name: path, type: 'file', mode: file.mode }, Buffer.from(file.content))
  }
  archive.finalize()
  return buffer(archive)
}

/** Gives the same order on every machine, independent of the locale. */
const compareCodeUnits = (left: string, right: string): number => (left < right ? -1 : Number(left > right))
