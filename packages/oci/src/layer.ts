import { createHash } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { type Extract as Reader, extract, type Header } from 'tar-stream'
import { type UnpackLimits, consumeLimit, createLayerLimiter } from './layer-limits.ts'
import type { RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { normalizePath, quote } from './image-path.ts'
import { reserveMemory } from './memory-budget.ts'
import type { Descriptor, Image } from './types.ts'

/** Maximum size of a layer as stored in a registry, because the layer is held in memory. */
export const maxLayerBytes = 256 * 2 ** 20
const chunkBytes = 64 * 1024

export interface LayerEntry {
  /** Relative to the image root; see `normalizePath`. */
  path: string
  /** `nothing`: a device or a FIFO, which is not created because modules need none. */
  kind: 'file' | 'directory' | 'symlink' | 'link' | 'nothing'
  /** The target of a symlink, or the path of the file of a hard link. */
  target: string
  size: number
  isExecutable: boolean
  content: AsyncIterable<Buffer>
}

/** The DiffID is the digest of the uncompressed content. */
export interface Layer {
  descriptor: Descriptor
  diffId: string
}

/** Returns the layers of an image, lowest first. */
export const layersOf = ({ manifest, config }: Image): Layer[] =>
  manifest.layers.map((descriptor, index) => ({ descriptor, diffId: config.rootfs.diff_ids[index] ?? '' }))

const decompressors = {
  'application/vnd.oci.image.layer.v1.tar': () => new PassThrough(),
  'application/vnd.oci.image.layer.v1.tar+gzip': () => createGunzip(),
  'application/vnd.oci.image.layer.v1.tar+zstd': () => createZstdDecompress(),
  'application/vnd.docker.image.rootfs.diff.tar': () => new PassThrough(),
  'application/vnd.docker.image.rootfs.diff.tar.gzip': () => createGunzip(),
}

const isSupported = (mediaType: string): mediaType is keyof typeof decompressors =>
  Object.hasOwn(decompressors, mediaType)

/**
 * Yields the entries of a layer in order. The caller reads the content of an entry before it requests the next entry,
 * or not at all. Throws `RegistryError` if the layer is too large, malformed, or does not match the DiffID in the image
 * configuration. A DiffID mismatch is only detected after the last entry.
 */
export async function* layerEntries(
  client: RegistryClient,
  repository: string,
  { descriptor, diffId }: Layer,
  limits: UnpackLimits,
): AsyncGenerator<LayerEntry, void, undefined> {
  const { mediaType, digest } = descriptor
  if (!isSupported(mediaType)) throw new RegistryError('invalid', `Layers of ${quote(mediaType)} cannot be read.`)
  using _ = await reserveMemory(descriptor.size)
  const bytes = await client.blob(repository, descriptor, maxLayerBytes)
  const hash = createHash('sha256')
  const reader = extract()
  const limiter = createLayerLimiter(hash, limits)
  const pipelineEnd = pipeline(Readable.from(chunksOf(bytes)), decompressors[mediaType](), limiter.stream, reader)
  // Awaited below. Prevents an unhandled rejection if the pipeline fails before that.
  pipelineEnd.catch(() => undefined)
  try {
    for await (const entry of reader) {
      limiter.allow(entry.header)
      consumeLimit(limits, 'files', 1)
      yield entryOf(entry)
      entry.resume()
    }
    await pipelineEnd
  } catch (cause) {
    throw brokenLayerError(cause)
  } finally {
    reader.destroy()
  }
  const actualDiffId = `sha256:${hash.digest('hex')}`
  if (actualDiffId !== diffId)
    throw new RegistryError('invalid', `The layer ${digest} of ${repository} is not ${diffId}.`)
}

/** Small chunks let the pipeline stop at an error before it has read the whole layer. */
function* chunksOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes)
}

/** Maximum for an entry. Global attributes of the layer count only if the entry has a pax header of its own. */
const maxAttributes = 100

const kinds: Record<Header['type'], LayerEntry['kind']> = {
  file: 'file',
  'contiguous-file': 'file',
  directory: 'directory',
  symlink: 'symlink',
  link: 'link',
  'character-device': 'nothing',
  'block-device': 'nothing',
  fifo: 'nothing',
}

type Entry = Reader extends AsyncIterable<infer Value> ? Value : never

function entryOf(entry: Entry): LayerEntry {
  const { name, type, size, mode, linkname } = entry.header
  const kind = Object.hasOwn(kinds, type ?? '') ? kinds[type] : undefined
  const attributes = Object.keys(entry.header.pax ?? {})
  if (attributes.length > maxAttributes) {
    throw new RegistryError('invalid', `The entry ${quote(name)} has more than ${maxAttributes} attributes.`)
  }
  if (kind === undefined || attributes.some(isSparseAttribute)) {
    throw new RegistryError('invalid', `The entry ${quote(name)} has an unsupported type.`)
  }
  if (size > 0 && kind !== 'file' && kind !== 'directory') {
    throw new RegistryError('invalid', `The entry ${quote(name)} has content but is not a file.`)
  }
  const isExecutable = (mode & 0o111) !== 0
  return { path: normalizePath(name), kind, target: linkname ?? '', size, isExecutable, content: contentOf(entry) }
}

/**
 * Converts stream errors here, because the reader of a file in a truncated layer receives the error before
 * `layerEntries` does.
 */
async function* contentOf(entry: Entry): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const part of entry) if (Buffer.isBuffer(part)) yield part
  } catch (cause) {
    throw brokenLayerError(cause)
  }
}

const brokenLayerError = (cause: unknown): RegistryError =>
  cause instanceof RegistryError ? cause : new RegistryError('invalid', 'A layer of the image is broken.', { cause })

/** Whether an attribute marks a sparse file (GNU tar, pax format), which is stored as a list of segments. */
const isSparseAttribute = (attribute: string): boolean => attribute.startsWith('GNU.sparse.')
