import type { OutputReport } from '@platform/contract/relay'
import { Backlog, type Stream } from './backlog.ts'

/** What one output call carries, but for the lease. */
export type Chunk = Omit<OutputReport, 'leaseId'>

/** The output of a job in the order in which it is sent, each chunk kept until the server has acknowledged it. */
export class Output {
  readonly #backlog = new Backlog()
  #chunks: Chunk[]
  #nextSeq = 0
  #frozen: boolean

  /** Begins empty, or with the chunks that an earlier run of the relay did not deliver: then it takes no text. */
  constructor(undelivered?: Chunk[]) {
    this.#chunks = undelivered ?? []
    this.#frozen = undelivered !== undefined
  }

  get pendingBytes(): number {
    return this.#backlog.sizeBytes
  }

  /** Whether chunks are left of a round whose sending has begun. */
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

  /** Takes no more text. Answers what is not acknowledged, as it will be sent. */
  freeze(): readonly Chunk[] {
    while (this.#number());
    this.#frozen = true
    return this.#chunks
  }

  /** Forgets what is pending and takes no more. */
  discard(): void {
    this.freeze()
    this.#chunks = []
  }

  #number(): boolean {
    const piece = this.#backlog.take()
    if (piece) this.#chunks.push({ seq: this.#nextSeq++, ...piece })
    return piece !== undefined
  }
}
