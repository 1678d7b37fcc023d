import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import * as z from 'zod'

const maxInflatedBytes = 16_777_216

/** Selects the fastest level, because a caller waits. It compresses repeated text as well as the default level. */
const params = { [constants.ZSTD_c_compressionLevel]: 1 }

export const compress = (text: string): Uint8Array => zstdCompressSync(text, { params })

export const decompress = (value: unknown): string =>
  zstdDecompressSync(z.instanceof(Uint8Array).parse(value), { maxOutputLength: maxInflatedBytes }).toString()
