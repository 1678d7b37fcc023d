import type { OutputPiece } from '@platform/contract/relay'

export type Stream = OutputPiece['stream']

/** Output of one node and stream. `droppedBytes` is the number of bytes that were dropped before the piece. */
export type Piece = { nodeId: string; stream: Stream; bytes: Buffer; droppedBytes: number }

/** Maximum size of the output in one request, in bytes. */
export const maxRequestBytes = 64 * 1024

// The server keeps the same first and last bytes of the whole output.
const maxHeadBytes = 256 * 1024
const maxTailBytes = 768 * 1024
// Cost that is added for each segment, so that many short writes use bounded memory and few requests.
const segmentCostBytes = 100
// A line that is longer than this may be cut within the line.
const lineSearchBytes = 8192
const newline = 0x0a

type Segment = { nodeId: string; stream: Stream; parts: Buffer[]; sizeBytes: number }

/**
 * Unsent output in order of arrival, with bounded memory. If the server is slow, the first 256 KiB and about the
 * newest 768 KiB are kept. The bytes between are counted and dropped, in whole lines unless a line is very long.
 */
export class Backlog {
  readonly #head = new Queue()
  readonly #tail = new Queue()
  /** Incomplete characters at the end of the output, by stream and node. */
  readonly #partialCharacters = new Map<string, { nodeId: string; stream: Stream; bytes: Buffer }>()
  #droppedBytes = 0
  #lastTakenByte = newline

  get costBytes(): number {
    return this.#head.costBytes + this.#tail.costBytes
  }

  append(nodeId: string, stream: Stream, bytes: Buffer): void {
    const key = `${stream} ${nodeId}`
    const start = this.#partialCharacters.get(key)?.bytes
    const joinedBytes = start ? Buffer.concat([start, bytes]) : bytes
    const end = wholeCharacterBytes(joinedBytes)
    if (end < joinedBytes.length)
      this.#partialCharacters.set(key, { nodeId, stream, bytes: Buffer.from(joinedBytes.subarray(end)) })
    else this.#partialCharacters.delete(key)
    for (let rest = joinedBytes.subarray(0, end); rest.length > 0;) rest = this.#appendPart(nodeId, stream, rest)
    // Drops output only when the tail exceeds its limit by the size of a request, so that many short writes do not each
    // copy a segment.
    if (this.#tail.costBytes <= maxTailBytes + maxRequestBytes) return
    while (this.#tail.costBytes > maxTailBytes) this.#dropOldest()
  }

  /** Ends the output: appends the incomplete characters. */
  complete(): void {
    for (const { nodeId, stream, bytes } of this.#partialCharacters.values()) this.#appendPart(nodeId, stream, bytes)
    this.#partialCharacters.clear()
  }

  /** Removes and returns the output for one request. */
  take(): Piece[] {
    const pieces: Piece[] = []
    for (let costBytes = 0; ;) {
      const queue = this.#head.first ? this.#head : this.#tail
      const segment = queue.first
      if (!segment) return pieces
      costBytes += costOf(segment)
      if (pieces.length > 0 && costBytes > maxRequestBytes) return pieces
      queue.shift()
      const droppedBytes = queue === this.#tail ? this.#droppedBytes : 0
      const bytes = Buffer.concat(segment.parts)
      if (queue === this.#tail) this.#droppedBytes = 0
      this.#lastTakenByte = bytes.at(-1) ?? newline
      pieces.push({ nodeId: segment.nodeId, stream: segment.stream, bytes, droppedBytes })
    }
  }

  // Appends the part that fits into the newest segment and returns the rest.
  #appendPart(nodeId: string, stream: Stream, bytes: Buffer): Buffer {
    const { queue, segment } = this.#segmentFor(nodeId, stream)
    const roomBytes = maxRequestBytes - segment.sizeBytes
    const part = bytes.length <= roomBytes ? bytes : cutBeforeCharacter(bytes, roomBytes)
    // The part is copied, because the reader may reuse its buffer.
    queue.grow(segment, Buffer.from(part))
    return bytes.subarray(part.length)
  }

  #segmentFor(nodeId: string, stream: Stream): { queue: Queue; segment: Segment } {
    const isHead = this.#tail.first === undefined
    const newestSegment = isHead ? this.#head.last : this.#tail.last
    // A character has up to 4 bytes, so a segment with less room counts as full.
    const hasRoom = newestSegment !== undefined && newestSegment.sizeBytes <= maxRequestBytes - 4
    if (hasRoom && newestSegment.nodeId === nodeId && newestSegment.stream === stream) {
      return { queue: isHead ? this.#head : this.#tail, segment: newestSegment }
    }
    const queue = isHead && this.#head.costBytes < maxHeadBytes ? this.#head : this.#tail
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
    // At the first drop, the end of a line that began before these bytes is kept.
    const keptEnd = this.#droppedBytes === 0 && this.#isLineOpenBeforeTail() ? indexAfterLine(bytes, 0) : 0
    const excessBytes = this.#tail.costBytes - maxTailBytes
    const cutIndex = keptEnd + excessBytes < bytes.length ? indexAfterLine(bytes, keptEnd + excessBytes) : bytes.length
    this.#tail.shift()
    if (keptEnd > 0) this.#head.add({ nodeId, stream, parts: [bytes.subarray(0, keptEnd)], sizeBytes: keptEnd })
    const rest = bytes.subarray(cutIndex)
    if (rest.length > 0) this.#tail.addFirst({ nodeId, stream, parts: [rest], sizeBytes: rest.length })
    this.#droppedBytes += cutIndex - keptEnd
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

// Returns the index after the next newline, or the next character boundary if there is no newline in
// `lineSearchBytes`.
function indexAfterLine(bytes: Buffer, from: number): number {
  const end = bytes.subarray(from, from + lineSearchBytes).indexOf(newline)
  if (end !== -1) return from + end + 1
  let cutIndex = from
  while (cutIndex < from + 3 && isContinuation(bytes[cutIndex])) cutIndex++
  return cutIndex
}

function cutBeforeCharacter(bytes: Buffer, limitBytes: number): Buffer {
  let cutIndex = limitBytes
  while (cutIndex > limitBytes - 3 && isContinuation(bytes[cutIndex])) cutIndex--
  return bytes.subarray(0, isContinuation(bytes[cutIndex]) ? limitBytes : cutIndex)
}

// Returns the length without an incomplete character at the end.
function wholeCharacterBytes(bytes: Buffer): number {
  for (let distance = 1; distance <= Math.min(3, bytes.length); distance++) {
    const byte = bytes[bytes.length - distance]!
    if (isContinuation(byte)) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > distance ? bytes.length - distance : bytes.length
  }
  return bytes.length
}

function isContinuation(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}
