import type { OutputReport } from '@platform/contract/relay'

export type Stream = OutputReport['stream']
/** Output of one node and stream. */
export type OutputChunk = Pick<OutputReport, 'nodeId' | 'stream' | 'data'>

/** The largest output call, in bytes of UTF-8. */
export const chunkBytes = 64 * 1024

// The server retains the same parts of the whole output.
const headBytes = 256 * 1024
const tailBytes = 768 * 1024

type Segment = OutputChunk & { sizeBytes: number; round: number; queue: Queue }
type Queue = { segments: Segment[]; sizeBytes: number }

/**
 * Output that is not sent yet, bounded in memory: if the server is slow, the first 256 KiB and the newest 768 KiB are
 * kept, with a line between them that states the dropped bytes. Text of one node and stream joins one segment per
 * round, so a script that alternates between both streams does not cost one call per line.
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

  /** Whether the oldest text belongs to a round that has ended. */
  get isRoundOver(): boolean {
    const oldest = this.#oldest()
    return oldest !== undefined && oldest.round < this.#round
  }

  append(nodeId: string, stream: Stream, text: string): void {
    for (let rest = text; rest !== '';) rest = appendTo(this.#segmentFor(nodeId, stream), rest)
    while (this.#tail.sizeBytes > tailBytes) this.#dropOldest()
  }

  /** Removes and returns the oldest chunk; later text does not join the pending chunks. */
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
    // Without room for any one character the segment counts as full.
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

/** Adds the part of the text that fits; returns the rest. */
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

/** Splits at this many bytes of UTF-8, before or after a character that crosses the limit. */
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
