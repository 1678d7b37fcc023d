import type { Hash } from 'node:crypto'
import { Transform } from 'node:stream'
import type { Header } from 'tar-stream'
import { RegistryError } from './error.ts'

/** Remaining limits of reading an image. They decrease as layers are read. */
export interface UnpackLimits {
  bytes: number
  /** Files, directories and other entries. */
  files: number
}

export const defaultUnpackLimits = (): UnpackLimits => ({ bytes: 2 * 2 ** 30, files: 100_000 })

/** Throws `RegistryError` (`too_large`) if the limit is exceeded. */
export function consumeLimit(limits: UnpackLimits, kind: keyof UnpackLimits, count: number): void {
  limits[kind] -= count
  if (limits[kind] < 0) throw new RegistryError('too_large', `The image has too many ${kind}.`)
}

/** Bytes of metadata (attributes, long names) that a layer may contain: a base, and an addition for each entry. */
const [baseMetadataBytes, metadataBytesPerEntry] = [512 * 1024, 4096]
const blockBytes = 512

export interface LayerLimiter {
  /** Passes content through, computes its digest and counts it against the limits. */
  stream: Transform
  /** Raises the limit by the bytes of an entry: header, content and `metadataBytesPerEntry`. */
  allow: (header: Header) => void
}

/**
 * Measures a layer before the archive reader receives it. The reader buffers metadata as a whole, which takes far more
 * memory than content, so a layer that consists mostly of metadata is rejected before it is buffered. The stream fails
 * with `RegistryError` (`too_large`).
 */
export function createLayerLimiter(hash: Hash, limits: UnpackLimits): LayerLimiter {
  let readBytes = 0
  let allowedBytes = baseMetadataBytes
  const measure = (chunk: Buffer): Buffer => {
    hash.update(chunk)
    consumeLimit(limits, 'bytes', chunk.length)
    readBytes += chunk.length
    if (readBytes <= allowedBytes) return chunk
    throw new RegistryError('too_large', 'A layer of the image has too much metadata.')
  }
  return { stream: transformBy(measure), allow: (header) => (allowedBytes += metadataBytesPerEntry + bytesOf(header)) }
}

/** Ignores the size of a directory, as the archive reader does. */
const bytesOf = ({ type, size }: Header): number =>
  blockBytes + (type === 'directory' ? 0 : Math.ceil(size / blockBytes) * blockBytes)

const transformBy = (measure: (chunk: Buffer) => Buffer): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        done(null, measure(chunk))
      } catch (error) {
        done(error instanceof Error ? error : new Error('A layer cannot be read.'))
      }
    },
  })
