import type { components } from '../../../../contract/openapi.d.ts'

type Chunk = components['schemas']['OutputChunk']

/** A chunk of output. `bytes` are the raw bytes, which the offsets count; `data` is the text to show. */
export interface Part extends Chunk {
  bytes: Uint8Array<ArrayBuffer>
}

const encoder = new TextEncoder()

const bytesOf = ({ data, encoding }: Chunk): Uint8Array<ArrayBuffer> =>
  encoding === undefined ? encoder.encode(data) : Uint8Array.from(atob(data), (character) => character.charCodeAt(0))

/** Returns a key for the source of a chunk: its node and stream. */
export const sourceOf = ({ stream, nodeId }: Pick<Chunk, 'stream' | 'nodeId'>): string => `${stream} ${nodeId}`

/** Returns a function that decodes the chunks of a job, which it must receive in order. */
export function outputReader(): (chunks: readonly Chunk[]) => Part[] {
  const decoders = new Map<string, InstanceType<typeof TextDecoder>>()
  let time: string | undefined
  const read = (chunk: Chunk): Part => {
    const decoder = decoders.get(sourceOf(chunk)) ?? new TextDecoder('utf-8', { ignoreBOM: true })
    decoders.set(sourceOf(chunk), decoder)
    const bytes = bytesOf(chunk)
    time = chunk.at ?? time
    // A character may continue in the next chunk. Bytes that are not valid UTF-8 are replaced in the text.
    const data = decoder.decode(bytes, { stream: true })
    return { ...chunk, data, bytes, ...(time !== undefined && { at: time }) }
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

/** Returns the parts with the number of lost bytes before each. An empty `nodeId` selects all nodes. */
export const rowsOf = (parts: readonly Part[], nodeId: string): OutputRow[] =>
  parts
    .map((part, index) => ({ part, lostBytes: missingBetween(parts[index - 1], part) }))
    .filter(({ part }) => nodeId === '' || part.nodeId === nodeId)

export const lostText = (bytes: number): string =>
  `── ${bytes.toLocaleString('en')} bytes of the output of all nodes were not retained ──`

/** Returns the unchanged bytes of the output, with notes about lost bytes, for the download. */
export const fileParts = (rows: readonly OutputRow[]): (string | Uint8Array<ArrayBuffer>)[] =>
  rows.flatMap(({ part, lostBytes }) => (lostBytes > 0 ? [`\n${lostText(lostBytes)}\n`, part.bytes] : [part.bytes]))
