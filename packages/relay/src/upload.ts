import { chunkBytes, type Stream } from './backlog.ts'
import type { Client } from './client.ts'
import { type RelayResponse, codeOf } from './http.ts'
import { warn } from './log.ts'
import type { Chunk, Output } from './output.ts'
import { Signal } from './signal.ts'

const roundMs = 250

export type Lease = { jobId: string; leaseId: string }

export type UploadOptions = {
  lease: Lease
  output: Output
  client: Client
  /** Called when the server requests that the script is stopped. */
  onCancel: () => void
}

/** Sends the output of a job while the script runs: one request per 250 ms, or earlier if a request is full. */
export class Upload {
  readonly #options: UploadOptions
  readonly #signal = new Signal()
  #closed = false
  #sent = Promise.resolve()

  constructor(options: UploadOptions) {
    this.#options = options
  }

  append(nodeId: string, stream: Stream, text: string): void {
    this.#options.output.append(nodeId, stream, text)
    this.#signal.wake()
  }

  /** Starts sending until the signal aborts or the output has ended. */
  start(signal: AbortSignal): void {
    this.#sent = this.#run(signal)
    // `sent` returns this promise. Without a handler, Node.js would end the process before a caller awaits it.
    this.#sent.catch(() => {})
  }

  /** Ends the output and sends the rest without delay. Returns the unacknowledged chunks. */
  close(): readonly Chunk[] {
    this.#closed = true
    this.#signal.wake()
    return this.#options.output.freeze()
  }

  /** Resolves after `close`, when the server has acknowledged or rejected all output. */
  sent(): Promise<void> {
    return this.#sent
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { output } = this.#options
    for (;;) {
      if (!output.isSending) await this.#waitForRound(output)
      const chunk = output.next()
      if (!chunk) return
      await this.#send(chunk, signal)
    }
  }

  async #waitForRound(output: Output): Promise<void> {
    while (!this.#closed && output.pendingBytes === 0) await this.#signal.wait()
    const endMs = performance.now() + roundMs
    while (!this.#closed && output.pendingBytes < chunkBytes) {
      const remainingMs = endMs - performance.now()
      if (remainingMs <= 0) return
      await this.#signal.wait(remainingMs)
    }
  }

  async #send(chunk: Chunk, signal: AbortSignal): Promise<void> {
    const { lease, output, client, onCancel } = this.#options
    const body = { leaseId: lease.leaseId, ...chunk }
    const response = await client.deliver({ path: `/jobs/${lease.jobId}/output`, body, signal })
    if (response.status === 200) {
      output.acknowledge()
      if (response.body.cancel === true) onCancel()
    } else {
      output.discard()
      if (isJobFinished(response)) onCancel()
      else warn(`The server rejected output of job ${lease.jobId} (${codeOf(response)}); the rest is not sent.`)
    }
  }
}

// 404 and 409 mean that the server needs no more output, except for a wrong sequence number.
function isJobFinished(response: RelayResponse): boolean {
  return response.status === 404 || (response.status === 409 && codeOf(response) !== 'output_out_of_order')
}
