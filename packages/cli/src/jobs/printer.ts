import type { Schemas } from '../api/client.ts'
import { sanitiseText, oneLine } from '../print/text.ts'
import { say, write, writeError } from '../print/write.ts'

type Chunk = Schemas['OutputChunk']

/** Prints output as it arrives, each stream to its own. */
export interface OutputPrinter {
  print: (chunk: Chunk) => Promise<void>
  /** Prints the rest of an unfinished line. */
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

/** Prints the output of several nodes, each line prefixed with its node. Terminals show control characters as text. */
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

function labelled(name: string, text: string): string {
  const shown = forReader(text)
  return shown.replaceAll(/^(?=[^])/gm, `${oneLine(name)} | `)
}

/** Sanitises script output for terminals; files get it unchanged. */
export const forReader = (text: string): string => (process.stdout.isTTY ? sanitiseText(text) : text)
