// oxlint-disable no-control-regex -- this file handles control characters
import type { components } from '../../../../contract/openapi.d.ts'

type Chunk = components['schemas']['OutputChunk']

/** A chunk of output. `bytes` are the raw bytes, which the offsets count; `data` is the text to show. */
export interface Part extends Chunk {
  bytes: Uint8Array<ArrayBuffer>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

const bytesOf = ({ data, encoding }: Chunk): Uint8Array<ArrayBuffer> =>
  encoding === undefined ? encoder.encode(data) : Uint8Array.from(atob(data), (character) => character.charCodeAt(0))

// An escape sequence or line ending that may continue in the next chunk.
const incompleteEnd = /(?:\u001b(?:\[[0-?]{0,40}[ -/]{0,5}|\][^\u0007\u001b]{0,200})?|\r)$/

/**
 * Returns a function that reads the chunks of a job in order. An unfinished sequence is moved to the next chunk of the
 * same node and stream.
 */
export function outputReader(): (chunks: readonly Chunk[]) => Part[] {
  const pending = new Map<string, string>()
  const read = (chunk: Chunk): Part => {
    const source = `${chunk.stream} ${chunk.nodeId}`
    const bytes = bytesOf(chunk)
    // Bytes that are not valid UTF-8 are replaced in the text.
    const text = (pending.get(source) ?? '') + decoder.decode(bytes)
    const rest = incompleteEnd.exec(text)?.[0] ?? ''
    pending.set(source, rest)
    return { ...chunk, data: text.slice(0, text.length - rest.length), bytes }
  }
  return (chunks) => chunks.map(read)
}

// The platform keeps only these first and last bytes of an output.
const headBytes = 256 * 1024
const tailBytes = 768 * 1024

/** Drops the middle of a long output, as the platform does. */
export function retain(parts: readonly Part[]): readonly Part[] {
  const tailFrom = endOf(parts.at(-1)) - tailBytes
  if (tailFrom <= headBytes) return parts
  return parts.filter((part) => part.offset < headBytes || endOf(part) > tailFrom)
}

const missingBetween = (before: Part | undefined, part: Part): number => Math.max(0, part.offset - endOf(before))

const endOf = (part: Part | undefined): number => (part === undefined ? 0 : part.offset + part.bytes.length)

export interface OutputRow {
  part: Part
  /** Number of lost bytes before this part. */
  lostBytes: number
}

/** The parts with the number of lost bytes before each. An empty `nodeId` selects all nodes. */
export const rowsOf = (parts: readonly Part[], nodeId: string): OutputRow[] =>
  parts
    .map((part, index) => ({ part, lostBytes: missingBetween(parts[index - 1], part) }))
    .filter(({ part }) => nodeId === '' || part.nodeId === nodeId)

export const lostText = (bytes: number): string =>
  `\n── ${bytes.toLocaleString()} bytes of the output of all nodes were not retained ──\n`

/** The unchanged bytes of the output, for the download. */
export const fileParts = (rows: readonly OutputRow[]): (string | Uint8Array<ArrayBuffer>)[] =>
  rows.flatMap(({ part, lostBytes }) => (lostBytes > 0 ? [lostText(lostBytes), part.bytes] : [part.bytes]))

// Sequences of the forms `ESC [ … letter`, `ESC ] … BEL` and `ESC letter`.
const escapeSequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** Converts terminal output to plain text: without colours, and with rewritten lines in their final state. */
export const plainText = (written: string): string =>
  written
    .replaceAll(escapeSequences, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(finalLine)
    .join('\n')
    .replaceAll(controlCharacters, '')

// A carriage return restarts the line. Progress bars use it.
function finalLine(line: string): string {
  const content = line.replace(/\r+$/, '')
  return content.slice(content.lastIndexOf('\r') + 1)
}
