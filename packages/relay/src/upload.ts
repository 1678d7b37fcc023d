import { chunkBytes, type Stream } from './backlog.ts'
import type { Client } from './client.ts'
import { type RelayResponse, codeOf } from './http.ts'
import { warn } from './log.ts'
import type { Chunk, Output } from './output.ts'
import { Signal } from './signal.ts'

const pauseMs = 250

export type Lease = { jobId: string; leaseId: string }

export type UploadParts = {
  lease: Lease
  output: Output
  client: Client
  /** Called when the server wants the script stopped. */
  onCancel: () => void
}

/** Sends the output of a job while it is written: one call per 250 ms, or sooner if a call is full. */
export class Upload {
  readonly #parts: UploadParts
  readonly #wake = new Signal()
  #closed = false
  #sent = Promise.resolve()

  constructor(parts: UploadParts) {
    this.#parts = parts
  }

  append(nodeId: string, stream: Stream, text: string): void {
    this.#parts.output.append(nodeId, stream, text)
    this.#wake.wake()
  }

  /** Starts sending; the signal ends it. */
  start(signal: AbortSignal): void {
    this.#sent = this.#run(signal)
    // Callers of `sent` receive the error; until then it must not count as unhandled.
    this.#sent.catch(() => {})
  }

  /** Ends the output and sends the rest without delay. Returns the unacknowledged chunks. */
  close(): readonly Chunk[] {
    this.#closed = true
    this.#wake.wake()
    return this.#parts.output.freeze()
  }

  /** Resolves after a close, when the server has acknowledged or rejected everything. */
  sent(): Promise<void> {
    return this.#sent
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { output } = this.#parts
    for (;;) {
      if (!output.isSending) await this.#roundEnd(output)
      const chunk = output.next()
      if (!chunk) return
      await this.#send(chunk, signal)
    }
  }

  async #roundEnd(output: Output): Promise<void> {
    while (!this.#closed && output.pendingBytes === 0) await this.#wake.wait()
    const endMs = performance.now() + pauseMs
    while (!this.#closed && output.pendingBytes < chunkBytes) {
      const leftMs = endMs - performance.now()
      if (leftMs <= 0) return
      await this.#wake.wait(leftMs)
    }
  }

  async #send(chunk: Chunk, signal: AbortSignal): Promise<void> {
    const { lease, output, client, onCancel } = this.#parts
    const body = { leaseId: lease.leaseId, ...chunk }
    const answer = await client.deliver({ path: `/jobs/${lease.jobId}/output`, body, signal })
    if (answer.status === 200) {
      output.acknowledge()
      if (answer.body.cancel === true) onCancel()
    } else {
      output.discard()
      if (isJobOver(answer)) onCancel()
      else warn(`The server rejected output of job ${lease.jobId} (${codeOf(answer)}); the rest is not sent.`)
    }
  }
}

/** The server has ended the job otherwise and needs no more output. */
function isJobOver(answer: RelayResponse): boolean {
  return answer.status === 404 || (answer.status === 409 && codeOf(answer) !== 'output_out_of_order')
}
