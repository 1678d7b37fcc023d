import type { Schemas } from '../api/client.ts'
import { sanitiseText, oneLine } from '../print/text.ts'
import { say, write, writeError } from '../print/write.ts'

type Chunk = Schemas['OutputChunk']

/** Prints output of a job as it arrives. Each stream is printed to the stream of the same name. */
export interface OutputPrinter {
  print: (chunk: Chunk) => Promise<void>
  /** Prints the last line even if it is unfinished. */
  end: () => Promise<void>
}

const writeTo = (stream: Chunk['stream'], text: string): Promise<void> =>
  stream === 'stdout' ? write(text) : writeError(text)

/** Prints the output of one node unchanged. */
export function rawPrinter(): OutputPrinter {
  let expected: number | undefined
  return {
    async print({ offset, stream, data }) {
      if (expected !== undefined && offset > expected) say(`(${offset - expected} bytes of output were dropped)`)
      expected = offset + Buffer.byteLength(data)
      await writeTo(stream, data)
    },
    end: async () => {},
  }
}

/** Prints the output of several nodes and prefixes each line with the name of its node. */
export function labelledPrinter(nameOf: ReadonlyMap<string, string>): OutputPrinter {
  const unfinished = new Map<string, { chunk: Chunk; text: string }>()
  const lines = (chunk: Chunk, text: string) =>
    writeTo(chunk.stream, labelled(nameOf.get(chunk.nodeId) ?? chunk.nodeId, text))
  return {
    async print(chunk) {
      const key = `${chunk.nodeId} ${chunk.stream}`
      const text = (unfinished.get(key)?.text ?? '') + chunk.data
      const end = text.lastIndexOf('\n') + 1
      unfinished.set(key, { chunk, text: text.slice(end) })
      if (end > 0) await lines(chunk, text.slice(0, end))
    },
    async end() {
      for (const { chunk, text } of unfinished.values()) if (text !== '') await lines(chunk, `${text}\n`)
    },
  }
}

/** Prefixes each line. Only a line feed ends a line; other separators are part of the output. */
export function labelled(name: string, text: string): string {
  const shown = forReader(text)
  return shown.replaceAll(/(?:^|(?<=\n))(?=[^])/g, `${oneLine(name)} | `)
}

/** Makes control characters of script output visible in a terminal. Files and pipes receive the output unchanged. */
export const forReader = (text: string): string => (process.stdout.isTTY ? sanitiseText(text) : text)
