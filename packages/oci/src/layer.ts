import { createHash } from 'node:crypto'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { type Extract as Reader, extract, type Header } from 'tar-stream'
import { type UnpackLimits, consumeLimit } from './unpack-limits.ts'
import type { RegistryClient } from './client.ts'
import { RegistryError } from './error.ts'
import { imagePath, quoted } from './image-path.ts'
import { layerLimiter } from './layer-limits.ts'
import { reserveMemory } from './memory-budget.ts'
import type { Descriptor, Image } from './types.ts'

/** The most that a layer may count as it is kept in a registry: it is held in memory. */
export const maxLayerBytes = 256 * 2 ** 20
const partBytes = 64 * 1024

export interface LayerEntry {
  /** From the root of the image; see `imagePath`. */
  path: string
  /** `nothing`: a device, a fifo. No module needs one, so that none is made. */
  kind: 'file' | 'directory' | 'symlink' | 'link' | 'nothing'
  /** Of a symlink its text, of a (hard) link the name of the file. */
  target: string
  size: number
  isExecutable: boolean
  content: AsyncIterable<Buffer>
}

/** A layer, and the digest of its uncompressed content. */
export interface Layer {
  descriptor: Descriptor
  diffId: string
}

/** The layers of an image, lowest first. */
export const layersOf = ({ manifest, config }: Image): Layer[] =>
  manifest.layers.map((descriptor, index) => ({ descriptor, diffId: config.rootfs.diff_ids[index] ?? '' }))

const forms = {
  'application/vnd.oci.image.layer.v1.tar': () => new PassThrough(),
  'application/vnd.oci.image.layer.v1.tar+gzip': () => createGunzip(),
  'application/vnd.oci.image.layer.v1.tar+zstd': () => createZstdDecompress(),
  'application/vnd.docker.image.rootfs.diff.tar': () => new PassThrough(),
  'application/vnd.docker.image.rootfs.diff.tar.gzip': () => createGunzip(),
}

const isKnownForm = (mediaType: string): mediaType is keyof typeof forms => Object.hasOwn(forms, mediaType)

/**
 * What a layer holds, in its order; each entry's content is read before the next entry is asked for, or not at all.
 * Throws `RegistryFailure` where the layer is too large, broken, or not what the image's configuration says it is; that
 * shows after the last entry only.
 */
export async function* layerEntries(
  client: RegistryClient,
  repository: string,
  { descriptor, diffId }: Layer,
  allowance: UnpackLimits,
): AsyncGenerator<LayerEntry, void, undefined> {
  const { mediaType, digest } = descriptor
  if (!isKnownForm(mediaType)) throw new RegistryError('invalid', `Layers of ${quoted(mediaType)} cannot be read.`)
  using _ = await reserveMemory(descriptor.size)
  const bytes = await client.blob(repository, descriptor, maxLayerBytes)
  const hash = createHash('sha256')
  const reader = extract()
  const meter = layerLimiter(hash, allowance)
  const feeding = pipeline(Readable.from(partsOf(bytes)), forms[mediaType](), meter.passage, reader)
  // Awaited below; without an entry after its failure nobody would hear of it in time.
  feeding.catch(() => undefined)
  try {
    for await (const entry of reader) {
      meter.expect(entry.header)
      consumeLimit(allowance, 'files', 1)
      yield entryOf(entry)
      entry.resume()
    }
    await feeding
  } catch (cause) {
    throw brokenLayer(cause)
  } finally {
    reader.destroy()
  }
  const actual = `sha256:${hash.digest('hex')}`
  if (actual !== diffId) throw new RegistryError('invalid', `The layer ${digest} of ${repository} is not ${diffId}.`)
}

/** In parts, so that what is wrong with a layer shows before all of it is on its way. */
function* partsOf(bytes: Buffer): Generator<Buffer, void, undefined> {
  for (let from = 0; from < bytes.length; from += partBytes) yield bytes.subarray(from, from + partBytes)
}

/** Those said of all files of a layer included: each entry pays for them once more. */
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
    throw new RegistryError('invalid', `The entry ${quoted(name)} has more than ${maxAttributes} attributes.`)
  }
  if (kind === undefined || attributes.some(isOfSparse)) {
    throw new RegistryError('invalid', `The entry ${quoted(name)} is of a kind that images do not have.`)
  }
  if (size > 0 && kind !== 'file' && kind !== 'directory') {
    throw new RegistryError('invalid', `The entry ${quoted(name)} has content and is no file.`)
  }
  const isExecutable = (mode & 0o111) !== 0
  return { path: imagePath(name), kind, target: linkname ?? '', size, isExecutable, content: contentOf(entry) }
}

/** Where a layer ends too early, who reads a file of it hears of it first. */
async function* contentOf(entry: Entry): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const part of entry) if (Buffer.isBuffer(part)) yield part
  } catch (cause) {
    throw brokenLayer(cause)
  }
}

const brokenLayer = (cause: unknown): RegistryError =>
  cause instanceof RegistryError ? cause : new RegistryError('invalid', 'A layer of the image is broken.', { cause })

/** Files with holes are kept as a list of their parts (GNU tar in the form of pax): what is read is not the file. */
const isOfSparse = (attribute: string): boolean => attribute.startsWith('GNU.sparse.')
