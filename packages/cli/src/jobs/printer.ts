import type { Schemas } from '../api/client.ts'
import { sanitiseText, oneLine } from '../print/text.ts'
import { write, writeError } from '../print/write.ts'

type Chunk = Schemas['OutputChunk']

/** Prints output of a job as it arrives. Each stream is printed to the stream of the same name. */
export interface OutputPrinter {
  print: (chunk: Chunk) => Promise<void>
  /** Prints the last line even if it is unfinished. */
  end: () => Promise<void>
}

const writeTo = (stream: Chunk['stream'], text: string | Uint8Array): Promise<void> =>
  stream === 'stdout' ? write(text) : writeError(text)

const newline = 0x0a

/** Prints the bytes of one node unchanged, with a line for output that was dropped. `from` is the first offset. */
export function rawPrinter(from: number): OutputPrinter {
  let expected = from
  let lastByte = newline
  return {
    async print({ offset, stream, ...chunk }) {
      const bytes = bytesOf(chunk)
      if (offset > expected) await writeTo(stream, droppedLine(offset - expected, lastByte !== newline))
      expected = offset + bytes.length
      lastByte = bytes.at(-1) ?? lastByte
      await writeTo(stream, bytes)
    },
    end: async () => {},
  }
}

const bytesOf = ({ data, encoding }: Pick<Chunk, 'data' | 'encoding'>): Buffer => Buffer.from(data, encoding ?? 'utf8')

const droppedLine = (bytes: number, isLineOpen: boolean): string =>
  `${isLineOpen ? '\n' : ''}[… ${bytes} bytes of the output of this job were dropped …]\n`

/** Prints the output of several nodes and prefixes each line with the name of its node. */
export function labelledPrinter(from: number, nameOf: ReadonlyMap<string, string>): OutputPrinter {
  let expected = from
  const unfinished = new Map<string, { chunk: Chunk; bytes: Buffer }>()
  const lines = (chunk: Chunk, bytes: Buffer) =>
    writeTo(chunk.stream, labelled(nameOf.get(chunk.nodeId) ?? chunk.nodeId, bytes))
  return {
    async print(chunk) {
      const key = `${chunk.nodeId} ${chunk.stream}`
      const bytes = bytesOf(chunk)
      if (chunk.offset > expected) await lines(chunk, Buffer.from(droppedLine(chunk.offset - expected, false)))
      expected = chunk.offset + bytes.length
      const all = Buffer.concat([unfinished.get(key)?.bytes ?? Buffer.alloc(0), bytes])
      const end = all.lastIndexOf(newline) + 1
      unfinished.set(key, { chunk, bytes: all.subarray(end) })
      if (end > 0) await lines(chunk, all.subarray(0, end))
    },
    async end() {
      for (const { chunk, bytes } of unfinished.values()) await lines(chunk, withLineEnd(bytes))
    },
  }
}

/** Prefixes each line. Only a line feed ends a line; other separators are part of the output. */
export function labelled(name: string, bytes: Buffer): Buffer {
  const label = Buffer.from(`${oneLine(name)} | `)
  const shown = escapedForTerminal(bytes)
  const parts: Buffer[] = []
  for (let from = 0, to = 0; from < shown.length; from = to) {
    to = shown.indexOf(newline, from) + 1 || shown.length
    parts.push(label, shown.subarray(from, to))
  }
  return Buffer.concat(parts)
}

export const withLineEnd = (bytes: Buffer): Buffer =>
  (bytes.at(-1) ?? newline) === newline ? bytes : Buffer.concat([bytes, Buffer.of(newline)])

/** Makes control characters of script output visible in a terminal. Files and pipes receive the output unchanged. */
export const escapedForTerminal = (bytes: Buffer): Buffer =>
  process.stdout.isTTY ? Buffer.from(sanitiseText(bytes.toString())) : bytes
