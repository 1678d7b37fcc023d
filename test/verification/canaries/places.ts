import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { PlatformProcess } from '../../support/platform.ts'
import { scan } from '../scan.ts'

const unpackers = [gunzipSync, inflateSync, zstdDecompressSync]

/** Bytes as they are, and unpacked where they are packed. */
function unpacked(bytes: Uint8Array): Buffer[] {
  const insides = unpackers.flatMap((unpack) => {
    try {
      return [unpack(bytes)]
    } catch {
      return []
    }
  })
  return [Buffer.from(bytes), ...insides]
}

/** All that a value of the store says, bytes unpacked. */
function* saidBy(value: AttributeValue): Generator<Buffer> {
  if (value.B !== undefined) yield* unpacked(value.B)
  for (const bytes of value.BS ?? []) yield* unpacked(bytes)
  for (const text of [value.S, value.N, ...(value.SS ?? [])]) if (text !== undefined) yield Buffer.from(text)
  for (const each of value.L ?? []) yield* saidBy(each)
  for (const [name, each] of Object.entries(value.M ?? {})) yield* namedBy(name, each)
}

function* namedBy(name: string, value: AttributeValue): Generator<Buffer> {
  yield Buffer.from(name)
  yield* saidBy(value)
}

/** Looks at the table and the queues of a running platform again and again, for what is there for a moment only. */
export class Places {
  /** Everything that the table has held, by place and content. */
  readonly table = new Map<string, Buffer>()
  /** Everything that the files of the queues have held. */
  readonly queues = new Map<string, Buffer>()
  readonly #platform: PlatformProcess
  #looks = 0

  constructor(platform: PlatformProcess) {
    this.#platform = platform
  }

  get looks(): number {
    return this.#looks
  }

  async look(): Promise<void> {
    await Promise.all([this.#lookAtTable(), this.#lookAtQueues()])
    this.#looks++
  }

  async #lookAtTable(): Promise<void> {
    for (const item of await scan(this.#platform)) {
      const text = Buffer.concat([...saidBy({ M: item })].flatMap((said) => [said, Buffer.from('\n')]))
      this.table.set(text.toString('latin1'), text)
    }
  }

  /** A journal keeps what was deleted until the room is needed. */
  async #lookAtQueues(): Promise<void> {
    const folder = join(this.#platform.dataDir, 'sqs')
    for (const name of await readdir(folder)) {
      const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0))
      for (let from = 0; from < bytes.length; from += 4096) {
        // Pages overlap: what stands at the end of one may go on in the next.
        const page = bytes.subarray(from, from + 4096 + 200)
        this.queues.set(page.toString('latin1'), page)
      }
    }
  }
}
