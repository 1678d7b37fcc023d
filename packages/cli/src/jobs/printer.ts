import type { Schemas } from '../api/client.ts'
import { shouldUseColor } from '../print/color.ts'
import { TerminalText } from '../print/terminal-text.ts'
import { oneLine } from '../print/text.ts'
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

/** How to print output: the first offset, and whether a terminal receives it unchanged. */
export interface PrinterOptions {
  start: number
  isRaw: boolean
}

/**
 * Returns a converter for a terminal. Returns undefined if the bytes are printed unchanged: with `isRaw`, or to a file
 * or pipe.
 */
function converterFor(stream: Chunk['stream'], isRaw: boolean, keepsReturns: boolean): TerminalText | undefined {
  const output = stream === 'stdout' ? process.stdout : process.stderr
  return output.isTTY && !isRaw ? new TerminalText({ hasColor: shouldUseColor(output), keepsReturns }) : undefined
}

/** Returns a printer without labels. Where output was dropped, it prints a line with the number of bytes. */
export function rawPrinter({ start, isRaw }: PrinterOptions): OutputPrinter {
  let nextOffset = start
  let lastByte = newline
  const texts = { stdout: converterFor('stdout', isRaw, true), stderr: converterFor('stderr', isRaw, true) }
  return {
    async print({ offset, stream, ...chunk }) {
      const bytes = bytesOf(chunk)
      if (offset > nextOffset) await writeTo(stream, droppedLine(offset - nextOffset, lastByte !== newline))
      nextOffset = offset + bytes.length
      lastByte = bytes.at(-1) ?? lastByte
      await writeTo(stream, texts[stream]?.next(bytes) ?? bytes)
    },
    async end() {
      await writeTo('stdout', texts.stdout?.end() ?? '')
      await writeTo('stderr', texts.stderr?.end() ?? '')
    },
  }
}

const bytesOf = ({ data, encoding }: Pick<Chunk, 'data' | 'encoding'>): Buffer => Buffer.from(data, encoding ?? 'utf8')

const droppedLine = (bytes: number, isLineOpen: boolean): string =>
  `${isLineOpen ? '\n' : ''}[… ${bytes} bytes of the output of this job were dropped …]\n`

/** Returns a printer that prefixes each line with the name of its node. */
export function labelledPrinter({ start, isRaw }: PrinterOptions, nameOf: ReadonlyMap<string, string>): OutputPrinter {
  let nextOffset = start
  const openLines = new Map<string, { chunk: Chunk; bytes: Buffer; text: TerminalText | undefined }>()
  const lines = (chunk: Chunk, bytes: Buffer, text?: TerminalText) => {
    const shownBytes = text === undefined ? bytes : Buffer.from(text.next(bytes))
    return writeTo(chunk.stream, labelLines(nameOf.get(chunk.nodeId) ?? chunk.nodeId, shownBytes))
  }
  return {
    async print(chunk) {
      const key = `${chunk.nodeId} ${chunk.stream}`
      const bytes = bytesOf(chunk)
      if (chunk.offset > nextOffset) await lines(chunk, Buffer.from(droppedLine(chunk.offset - nextOffset, false)))
      nextOffset = chunk.offset + bytes.length
      const { bytes: before, text } = openLines.get(key) ?? {
        bytes: Buffer.alloc(0),
        text: converterFor(chunk.stream, isRaw, false),
      }
      const joinedBytes = Buffer.concat([before, bytes])
      const end = joinedBytes.lastIndexOf(newline) + 1
      openLines.set(key, { chunk, bytes: joinedBytes.subarray(end), text })
      if (end > 0) await lines(chunk, joinedBytes.subarray(0, end), text)
    },
    async end() {
      for (const { chunk, bytes, text } of openLines.values()) await lines(chunk, withLineEnd(bytes), text)
    },
  }
}

/** Prefixes each line with a name. Only a line feed ends a line; other separators are part of the output. */
export function labelLines(name: string, bytes: Buffer): Buffer {
  const label = Buffer.from(`${oneLine(name)} | `)
  const parts: Buffer[] = []
  for (let from = 0, to = 0; from < bytes.length; from = to) {
    to = bytes.indexOf(newline, from) + 1 || bytes.length
    parts.push(label, bytes.subarray(from, to))
  }
  return Buffer.concat(parts)
}

export const withLineEnd = (bytes: Buffer): Buffer =>
  (bytes.at(-1) ?? newline) === newline ? bytes : Buffer.concat([bytes, Buffer.of(newline)])

/** Escapes the output of a job for a terminal, unless `isRaw` is set or standard output is not a terminal. */
export function escapeForTerminal(bytes: Buffer, isRaw: boolean): Buffer {
  const text = converterFor('stdout', isRaw, false)
  return text === undefined ? bytes : Buffer.from(text.next(bytes) + text.end())
}
