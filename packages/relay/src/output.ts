import type { OutputReport } from '@platform/contract/relay'
import { Backlog, type Stream } from './backlog.ts'

/** The body of one output request without the lease. */
export type Chunk = Omit<OutputReport, 'leaseId'>

/** The output of a job in sending order. Each chunk is kept until the server acknowledges it. */
export class Output {
  readonly #backlog = new Backlog()
  #chunks: Chunk[]
  #nextSeq = 0
  #frozen: boolean

  /**
   * `undelivered` are the chunks that an earlier run of the relay did not deliver. With them, no more text is accepted.
   */
  constructor(undelivered?: Chunk[]) {
    this.#chunks = undelivered ?? []
    this.#frozen = undelivered !== undefined
  }

  get pendingBytes(): number {
    return this.#backlog.sizeBytes
  }

  /** Whether chunks of a round that is being sent remain. */
  get isSending(): boolean {
    return this.#chunks.length > 0 || this.#backlog.isRoundOver
  }

  append(nodeId: string, stream: Stream, text: string): void {
    if (!this.#frozen) this.#backlog.append(nodeId, stream, text)
  }

  /** The chunk to send. It stays the same until it is acknowledged. */
  next(): Chunk | undefined {
    if (this.#chunks.length === 0) this.#takeChunk()
    return this.#chunks[0]
  }

  acknowledge(): void {
    this.#chunks.shift()
  }

  /** Stops accepting text and returns the unacknowledged chunks in sending order. */
  freeze(): readonly Chunk[] {
    while (this.#takeChunk());
    this.#frozen = true
    return this.#chunks
  }

  /** Drops the pending text and stops accepting more. */
  discard(): void {
    this.freeze()
    this.#chunks = []
  }

  #takeChunk(): boolean {
    const chunk = this.#backlog.take()
    if (chunk) this.#chunks.push({ seq: this.#nextSeq++, ...chunk })
    return chunk !== undefined
  }
}
