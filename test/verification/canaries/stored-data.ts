import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { PlatformProcess } from '../../support/platform.ts'
import { scan } from '../scan.ts'

const pageBytes = 4096
/** Pages overlap by at least the length of the longest encoded secret. */
const overlapBytes = 200

function uncompressed(bytes: Uint8Array): Buffer[] {
  const contents = [gunzipSync, inflateSync, zstdDecompressSync].flatMap((decompress) => {
    try {
      return [decompress(bytes)]
    } catch {
      return []
    }
  })
  return [Buffer.from(bytes), ...contents]
}

function contentsOf(value: AttributeValue): Buffer[] {
  const { B, BS = [], S, N, SS = [], L = [], M = {} } = value
  const texts = [S, N, ...SS, ...Object.keys(M)].filter((text) => text !== undefined)
  const binaries = B === undefined ? BS : [B, ...BS]
  const nested = [...L, ...Object.values(M)]
  return [...texts.map((text) => Buffer.from(text)), ...binaries.flatMap(uncompressed), ...nested.flatMap(contentsOf)]
}

export class StoredData {
  readonly tableItems = new Set<string>()
  readonly queuePages = new Set<string>()
  readonly #platform: PlatformProcess

  constructor(platform: PlatformProcess) {
    this.#platform = platform
  }

  async collect(): Promise<void> {
    for (const item of await scan(this.#platform))
      this.tableItems.add(
        Buffer.concat(contentsOf({ M: item }).flatMap((content) => [content, Buffer.from('\n')])).toString('latin1'),
      )
    const folder = join(this.#platform.dataDir, 'sqs')
    for (const name of await readdir(folder)) {
      const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0))
      for (let offset = 0; offset < bytes.length; offset += pageBytes)
        this.queuePages.add(bytes.toString('latin1', offset, offset + pageBytes + overlapBytes))
    }
  }

  /**
   * Collects repeatedly until the signal aborts, and then once more. Pauses four times as long as each attempt took,
   * but at least 500 ms. Ignores failed attempts, except the last one.
   */
  async collectUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const startedAtMs = performance.now()
      await this.collect().catch(() => undefined)
      await delay(Math.max(500, 4 * (performance.now() - startedAtMs)))
    }
    await this.collect()
  }
}
