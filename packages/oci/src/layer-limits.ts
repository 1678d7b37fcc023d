import type { Hash } from 'node:crypto'
import { Transform } from 'node:stream'
import type { Header } from 'tar-stream'
import { type UnpackLimits, consumeLimit } from './unpack-limits.ts'
import { RegistryError } from './error.ts'

/** What a layer may say of its files beside their content (attributes, long names): at once, and more with each file. */
const [describingBytes, describingBytesPerEntry] = [512 * 1024, 4096]
const blockBytes = 512

/** What passes of a layer, and how much of it is accounted for. */
export interface LayerLimiter {
  /** Passes content on while its digest is computed and its length is paid for. */
  passage: Transform
  /** An entry has come: its header, its content, and a little about it, are as they should be. */
  expect: (header: Header) => void
}

/**
 * Measures a layer on its way to whoever reads the archive. What describes files is read at once and costs far more than
 * content, so that a layer which does little but describe is refused before it was read. Its stream fails with
 * `RegistryFailure`, `too_large`.
 */
export function layerLimiter(hash: Hash, allowance: UnpackLimits): LayerLimiter {
  let passed = 0
  let expected = describingBytes
  const pass = (chunk: Buffer): Buffer => {
    hash.update(chunk)
    consumeLimit(allowance, 'bytes', chunk.length)
    passed += chunk.length
    if (passed <= expected) return chunk
    throw new RegistryError('too_large', 'A layer of the image says too much about its files.')
  }
  return { passage: transformBy(pass), expect: (header) => (expected += describingBytesPerEntry + bytesOf(header)) }
}

/** The archive's reader takes the size of a folder for nothing. */
const bytesOf = ({ type, size }: Header): number =>
  blockBytes + (type === 'directory' ? 0 : Math.ceil(size / blockBytes) * blockBytes)

const transformBy = (pass: (chunk: Buffer) => Buffer): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        done(null, pass(chunk))
      } catch (error) {
        done(error instanceof Error ? error : new Error('A layer cannot be read.'))
      }
    },
  })
