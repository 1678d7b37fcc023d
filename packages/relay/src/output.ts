import type { OutputPiece, OutputReport } from '@platform/contract/relay'
import { isUtf8 } from 'node:buffer'
import { Backlog, type Piece, type Stream } from './backlog.ts'

/** The body of one output request without the lease. */
export type OutputCall = Omit<OutputReport, 'leaseId'>

/** The output of a job in order of arrival. Each request is kept until the server acknowledges it. */
export class Output {
  readonly #backlog = new Backlog()
  #calls: OutputCall[]
  #nextSeq = 0
  #isFrozen: boolean

  /**
   * `undeliveredCalls` are the requests that an earlier run of the relay did not deliver. If they are given, no more
   * output is accepted.
   */
  constructor(undeliveredCalls?: OutputCall[]) {
    this.#calls = undeliveredCalls ?? []
    this.#isFrozen = undeliveredCalls !== undefined
  }

  get pendingBytes(): number {
    return this.#backlog.costBytes
  }

  /** The number of unacknowledged requests. Before `freeze`, this excludes output that is not part of a request. */
  get callCount(): number {
    return this.#calls.length
  }

  append(nodeId: string, stream: Stream, bytes: Buffer): void {
    if (!this.#isFrozen) this.#backlog.append(nodeId, stream, bytes)
  }

  /** Returns the request to send, if any. It stays the same until it is acknowledged. */
  next(): OutputCall | undefined {
    if (this.#calls.length === 0) this.#takeCall()
    return this.#calls[0]
  }

  acknowledge(): void {
    this.#calls.shift()
  }

  /** Stops accepting output and returns the unacknowledged requests in sending order. */
  freeze(): readonly OutputCall[] {
    this.#backlog.complete()
    while (this.#takeCall());
    this.#isFrozen = true
    return this.#calls
  }

  /** Drops the pending output and stops accepting more. */
  discard(): void {
    this.freeze()
    this.#calls = []
  }

  #takeCall(): boolean {
    const pieces = this.#backlog.take()
    if (pieces.length > 0) this.#calls.push({ seq: this.#nextSeq++, chunks: pieces.map(encode) })
    return pieces.length > 0
  }
}

function encode({ nodeId, stream, bytes, droppedBytes }: Piece): OutputPiece {
  return {
    nodeId,
    stream,
    ...(isUtf8(bytes) ? { data: bytes.toString() } : { data: bytes.toString('base64'), encoding: 'base64' }),
    ...(droppedBytes > 0 && { droppedBytes }),
  }
}
