import type { OutputReport } from '@platform/contract/relay'
import { Backlog, type Stream } from './backlog.ts'

/** The content of one output call, without the lease. */
export type Chunk = Omit<OutputReport, 'leaseId'>

/** The output of a job in sending order; each chunk is kept until the server has acknowledged it. */
export class Output {
  readonly #backlog = new Backlog()
  #chunks: Chunk[]
  #nextSeq = 0
  #frozen: boolean

  /** Starts empty, or with chunks that an earlier run of the relay did not deliver; then it accepts no text. */
  constructor(undelivered?: Chunk[]) {
    this.#chunks = undelivered ?? []
    this.#frozen = undelivered !== undefined
  }

  get pendingBytes(): number {
    return this.#backlog.sizeBytes
  }

  /** Whether chunks remain of a round that is being sent. */
  get isSending(): boolean {
    return this.#chunks.length > 0 || this.#backlog.isRoundOver
  }

  append(nodeId: string, stream: Stream, text: string): void {
    if (!this.#frozen) this.#backlog.append(nodeId, stream, text)
  }

  /** The chunk to send: the same one until it is acknowledged. */
  next(): Chunk | undefined {
    if (this.#chunks.length === 0) this.#number()
    return this.#chunks[0]
  }

  acknowledge(): void {
    this.#chunks.shift()
  }

  /** Accepts no more text. Returns the unacknowledged chunks, as they will be sent. */
  freeze(): readonly Chunk[] {
    while (this.#number());
    this.#frozen = true
    return this.#chunks
  }

  /** Drops the pending text and accepts no more. */
  discard(): void {
    this.freeze()
    this.#chunks = []
  }

  #number(): boolean {
    const chunk = this.#backlog.take()
    if (chunk) this.#chunks.push({ seq: this.#nextSeq++, ...chunk })
    return chunk !== undefined
  }
}
