import type { OutputPiece } from '@platform/contract/relay'

export type Stream = OutputPiece['stream']

/** Output of one node and stream. `droppedBytes` is the number of bytes that were dropped before it. */
export type Piece = { nodeId: string; stream: Stream; bytes: Buffer; droppedBytes: number }

/** Maximum size of the output in one request, in bytes. */
export const callBytes = 64 * 1024

// The server keeps the same first and last bytes of the whole output.
const headBytes = 256 * 1024
const tailBytes = 768 * 1024
// Charged for each segment, so that many short writes use bounded memory and requests.
const segmentCostBytes = 100
// A longer line is cut within the line.
const lineSearchBytes = 8192
const newline = 0x0a

type Segment = { nodeId: string; stream: Stream; parts: Buffer[]; sizeBytes: number }

/**
 * Unsent output in order of arrival, with bounded memory. If the server is slow, the first 256 KiB and the newest 768
 * KiB are kept. The bytes between are dropped in whole lines and counted.
 */
export class Backlog {
  readonly #head = new Queue()
  readonly #tail = new Queue()
  /** The start of a character, by node and stream, until its end arrives. */
  readonly #starts = new Map<string, { nodeId: string; stream: Stream; bytes: Buffer }>()
  #droppedBytes = 0
  #lastTakenByte = newline

  get sizeBytes(): number {
    return this.#head.costBytes + this.#tail.costBytes
  }

  append(nodeId: string, stream: Stream, bytes: Buffer): void {
    const key = `${stream} ${nodeId}`
    const start = this.#starts.get(key)?.bytes
    const joined = start ? Buffer.concat([start, bytes]) : bytes
    const end = wholeCharacters(joined)
    if (end < joined.length) this.#starts.set(key, { nodeId, stream, bytes: Buffer.from(joined.subarray(end)) })
    else this.#starts.delete(key)
    for (let rest = joined.subarray(0, end); rest.length > 0;) rest = this.#appendPart(nodeId, stream, rest)
    // Drops output only when the tail exceeds its limit by the size of a request, so that many short writes do not each
    // copy a segment.
    if (this.#tail.costBytes <= tailBytes + callBytes) return
    while (this.#tail.costBytes > tailBytes) this.#dropOldest()
  }

  /** Appends incomplete characters, because the output has ended. */
  complete(): void {
    for (const { nodeId, stream, bytes } of this.#starts.values()) this.#appendPart(nodeId, stream, bytes)
    this.#starts.clear()
  }

  /** Removes and returns the output for one request. */
  take(): Piece[] {
    const pieces: Piece[] = []
    for (let costBytes = 0; ;) {
      const queue = this.#head.first ? this.#head : this.#tail
      const segment = queue.first
      if (!segment) return pieces
      costBytes += costOf(segment)
      if (pieces.length > 0 && costBytes > callBytes) return pieces
      queue.shift()
      const droppedBytes = queue === this.#tail ? this.#droppedBytes : 0
      const bytes = Buffer.concat(segment.parts)
      if (queue === this.#tail) this.#droppedBytes = 0
      this.#lastTakenByte = bytes.at(-1) ?? newline
      pieces.push({ nodeId: segment.nodeId, stream: segment.stream, bytes, droppedBytes })
    }
  }

  // Appends what fits into the newest segment and returns the rest.
  #appendPart(nodeId: string, stream: Stream, bytes: Buffer): Buffer {
    const { queue, segment } = this.#segmentFor(nodeId, stream)
    const roomBytes = callBytes - segment.sizeBytes
    const fits = bytes.length <= roomBytes ? bytes : cutBeforeCharacter(bytes, roomBytes)
    // The reader may reuse its buffer.
    queue.grow(segment, Buffer.from(fits))
    return bytes.subarray(fits.length)
  }

  #segmentFor(nodeId: string, stream: Stream): { queue: Queue; segment: Segment } {
    const isHead = this.#tail.first === undefined
    const newest = isHead ? this.#head.last : this.#tail.last
    // A character has up to 4 bytes. A segment with less room counts as full.
    const hasRoom = newest !== undefined && newest.sizeBytes <= callBytes - 4
    if (hasRoom && newest.nodeId === nodeId && newest.stream === stream) {
      return { queue: isHead ? this.#head : this.#tail, segment: newest }
    }
    const queue = isHead && this.#head.costBytes < headBytes ? this.#head : this.#tail
    const segment = { nodeId, stream, parts: [], sizeBytes: 0 }
    queue.add(segment)
    return { queue, segment }
  }

  #isLineOpenBeforeTail(): boolean {
    return (this.#head.last?.parts.at(-1)?.at(-1) ?? this.#lastTakenByte) !== newline
  }

  #dropOldest(): void {
    const { nodeId, stream, parts } = this.#tail.first!
    const bytes = Buffer.concat(parts)
    // At the first cut, the line before it is kept whole.
    const keptEnd = this.#droppedBytes === 0 && this.#isLineOpenBeforeTail() ? afterLine(bytes, 0) : 0
    const excessBytes = this.#tail.costBytes - tailBytes
    const cut = keptEnd + excessBytes < bytes.length ? afterLine(bytes, keptEnd + excessBytes) : bytes.length
    this.#tail.shift()
    if (keptEnd > 0) this.#head.add({ nodeId, stream, parts: [bytes.subarray(0, keptEnd)], sizeBytes: keptEnd })
    const rest = bytes.subarray(cut)
    if (rest.length > 0) this.#tail.addFirst({ nodeId, stream, parts: [rest], sizeBytes: rest.length })
    this.#droppedBytes += cut - keptEnd
  }
}

class Queue {
  readonly #segments: Segment[] = []
  costBytes = 0

  get first(): Segment | undefined {
    return this.#segments[0]
  }

  get last(): Segment | undefined {
    return this.#segments.at(-1)
  }

  add(segment: Segment): void {
    this.#segments.push(segment)
    this.costBytes += costOf(segment)
  }

  addFirst(segment: Segment): void {
    this.#segments.unshift(segment)
    this.costBytes += costOf(segment)
  }

  shift(): void {
    const segment = this.#segments.shift()
    if (segment) this.costBytes -= costOf(segment)
  }

  grow(segment: Segment, bytes: Buffer): void {
    segment.parts.push(bytes)
    segment.sizeBytes += bytes.length
    this.costBytes += bytes.length
  }
}

function costOf({ sizeBytes }: Segment): number {
  return sizeBytes + segmentCostBytes
}

// The start of the first line at or after `from`. In a long line, `from` itself, moved to the next character.
function afterLine(bytes: Buffer, from: number): number {
  const end = bytes.subarray(from, from + lineSearchBytes).indexOf(newline)
  if (end !== -1) return from + end + 1
  let cut = from
  while (cut < from + 3 && isContinuation(bytes[cut])) cut++
  return cut
}

function cutBeforeCharacter(bytes: Buffer, limitBytes: number): Buffer {
  let cut = limitBytes
  while (cut > limitBytes - 3 && isContinuation(bytes[cut])) cut--
  return bytes.subarray(0, isContinuation(bytes[cut]) ? limitBytes : cut)
}

// The length without an incomplete character at the end.
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (isContinuation(byte)) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}
