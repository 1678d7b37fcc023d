import type { OutputReport } from '@platform/contract/relay'

export type Stream = OutputReport['stream']
/** A piece of output of one node and stream. */
export type OutputChunk = Pick<OutputReport, 'nodeId' | 'stream' | 'data'>

/** Maximum size of one output request, in bytes of UTF-8. */
export const chunkBytes = 64 * 1024

// The server keeps the same first and last bytes of the whole output.
const headBytes = 256 * 1024
const tailBytes = 768 * 1024

type Segment = OutputChunk & { sizeBytes: number; round: number; queue: Queue }
type Queue = { segments: Segment[]; sizeBytes: number }

/**
 * Unsent output with bounded memory. If the server is slow, the first 256 KiB and the newest 768 KiB are kept, with a
 * line between them that states the number of dropped bytes. Within a round, all text of one node and stream goes into
 * one segment, so that a script that alternates between both streams does not cause one request per line.
 */
export class Backlog {
  readonly #head: Queue = { segments: [], sizeBytes: 0 }
  readonly #tail: Queue = { segments: [], sizeBytes: 0 }
  readonly #open = new Map<string, Segment>()
  #round = 0
  #droppedBytes = 0

  get sizeBytes(): number {
    return this.#head.sizeBytes + this.#tail.sizeBytes
  }

  /** Whether the oldest segment belongs to a round that has ended. */
  get isRoundOver(): boolean {
    const oldest = this.#oldest()
    return oldest !== undefined && oldest.round < this.#round
  }

  append(nodeId: string, stream: Stream, text: string): void {
    for (let rest = text; rest !== '';) rest = appendTo(this.#segmentFor(nodeId, stream), rest)
    while (this.#tail.sizeBytes > tailBytes) this.#dropOldest()
  }

  /** Removes and returns the oldest segment, and ends its round, so that later text starts new segments. */
  take(): OutputChunk | undefined {
    const oldest = this.#oldest()
    if (oldest?.round === this.#round) this.#endRound()
    if (oldest && oldest.queue === this.#tail && this.#droppedBytes > 0) return this.#takeMarker(oldest)
    return oldest && shift(oldest.queue)
  }

  #oldest(): Segment | undefined {
    return this.#head.segments[0] ?? this.#tail.segments[0]
  }

  #endRound(): void {
    this.#round += 1
    this.#open.clear()
  }

  #takeMarker({ nodeId, stream }: Segment): OutputChunk {
    const data = `\n[… ${this.#droppedBytes} bytes dropped …]\n`
    this.#droppedBytes = 0
    return { nodeId, stream, data }
  }

  #segmentFor(nodeId: string, stream: Stream): Segment {
    const key = keyOf({ nodeId, stream })
    const open = this.#open.get(key)
    // A character has up to 4 bytes. A segment with less room counts as full.
    if (open && open.sizeBytes <= chunkBytes - 4) return open
    const inHead = this.#tail.segments.length === 0 && this.#head.sizeBytes < headBytes
    const queue = inHead ? this.#head : this.#tail
    const segment = { nodeId, stream, data: '', sizeBytes: 0, round: this.#round, queue }
    this.#open.set(key, segment)
    queue.segments.push(segment)
    return segment
  }

  #dropOldest(): void {
    const segment = this.#tail.segments[0]!
    const [dropped, remaining] = splitAtBytes(segment.data, this.#tail.sizeBytes - tailBytes, 'after')
    const droppedBytes = Buffer.byteLength(dropped)
    resize(segment, remaining, -droppedBytes)
    this.#droppedBytes += droppedBytes
    if (remaining !== '') return
    this.#tail.segments.shift()
    if (this.#open.get(keyOf(segment)) === segment) this.#open.delete(keyOf(segment))
  }
}

// Returns the text that did not fit.
function appendTo(segment: Segment, text: string): string {
  const [fits, rest] = splitAtBytes(text, chunkBytes - segment.sizeBytes, 'before')
  resize(segment, segment.data + fits, Buffer.byteLength(fits))
  return rest
}

function resize(segment: Segment, data: string, byBytes: number): void {
  segment.data = data
  segment.sizeBytes += byBytes
  segment.queue.sizeBytes += byBytes
}

function shift(queue: Queue): OutputChunk {
  const { nodeId, stream, data, sizeBytes } = queue.segments.shift()!
  queue.sizeBytes -= sizeBytes
  return { nodeId, stream, data }
}

function keyOf({ nodeId, stream }: Pick<OutputChunk, 'nodeId' | 'stream'>): string {
  return `${stream} ${nodeId}`
}

// A character that crosses the limit goes to the part that `side` names: `before` moves the split before it.
function splitAtBytes(text: string, limitBytes: number, side: 'before' | 'after'): [string, string] {
  const bytes = Buffer.from(text)
  if (bytes.length <= limitBytes) return [text, '']
  let end = limitBytes
  while (isInsideCharacter(bytes[end])) end += side === 'before' ? -1 : 1
  return [bytes.toString('utf8', 0, end), bytes.toString('utf8', end)]
}

function isInsideCharacter(byte = 0): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}
