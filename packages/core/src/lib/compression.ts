import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import * as z from 'zod'

const maxInflatedBytes = 16_777_216

/** A fast level, because a caller waits. Repeated text becomes about as small as with the default level. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 }

export const compress = (text: string): Uint8Array => zstdCompressSync(text, { params })

export const decompress = (value: unknown): string =>
  zstdDecompressSync(z.instanceof(Uint8Array).parse(value), { maxOutputLength: maxInflatedBytes }).toString()
