import { maxRequestBytes, type Stream } from './backlog.ts'
import type { Client } from './client.ts'
import { type RelayResponse, codeOf } from './http.ts'
import { warn } from './log.ts'
import type { Output, OutputCall } from './output.ts'
import { Signal } from './signal.ts'

// Short writes in quick succession go into one request.
const collectMs = 250
const intervalMs = 1000
// At one full request in this time, a job sends 1 MiB per second, which is the limit of the server.
const fullIntervalMs = 62.5

export type Lease = { jobId: string; leaseId: string }

export type UploadOptions = {
  lease: Lease
  output: Output
  client: Pick<Client, 'deliver'>
  /** Whether the server accepts the last part of the output in the report of the result, without another request. */
  keepsLast: () => boolean
  /** Called when the server has cancelled or ended the job, so that the script must stop. */
  onCancel: () => void
}

/** Sends the output of a job: at most one request per second, or more if requests are full. */
export class Upload {
  readonly #options: UploadOptions
  readonly #signal = new Signal()
  #isClosed = false
  #sending: Promise<OutputCall | undefined> = Promise.resolve(undefined)
  #sentAtMs = -intervalMs

  constructor(options: UploadOptions) {
    this.#options = options
  }

  append(nodeId: string, stream: Stream, bytes: Buffer): void {
    this.#options.output.append(nodeId, stream, bytes)
    this.#signal.wake()
  }

  /** Starts sending. Sending ends when the closed output is sent or the signal aborts. */
  start(signal: AbortSignal): void {
    this.#sending = this.#run(signal)
    // `untilSent` returns this promise. Without a handler, Node.js would end the process before a caller awaits it.
    this.#sending.catch(() => {})
  }

  /** Ends the output, and sends the rest at the maximum rate. Returns the requests that are not acknowledged. */
  close(): readonly OutputCall[] {
    this.#isClosed = true
    this.#signal.wake()
    return this.#options.output.freeze()
  }

  /**
   * Resolves after `close`, when the server has acknowledged or rejected all output. If `keepsLast` returns true, the
   * last request is not sent but returned. Rejects if the signal aborts a request.
   */
  untilSent(): Promise<OutputCall | undefined> {
    return this.#sending
  }

  async #run(signal: AbortSignal): Promise<OutputCall | undefined> {
    const { output, keepsLast } = this.#options
    for (;;) {
      await this.#untilDue(output)
      const call = output.next()
      if (call && this.#isClosed && keepsLast() && output.callCount === 1) return call
      if (call) {
        this.#sentAtMs = performance.now()
        await this.#send(call, signal)
      } else if (this.#isClosed) return undefined
    }
  }

  async #untilDue(output: Output): Promise<void> {
    while (!this.#isClosed && output.pendingBytes === 0) await this.#signal.wait()
    const collectedAtMs = performance.now() + collectMs
    for (;;) {
      const isFull = this.#isClosed || output.pendingBytes >= maxRequestBytes
      const dueAtMs = isFull ? this.#sentAtMs + fullIntervalMs : Math.max(collectedAtMs, this.#sentAtMs + intervalMs)
      const remainingMs = dueAtMs - performance.now()
      if (remainingMs <= 0) return
      await this.#signal.wait(remainingMs)
    }
  }

  async #send(call: OutputCall, signal: AbortSignal): Promise<void> {
    const { lease, output, client, onCancel } = this.#options
    const body = { leaseId: lease.leaseId, ...call }
    const response = await client.deliver({
      path: `/jobs/${lease.jobId}/output`,
      body,
      signal,
      isSuccess: ({ status, body }) => status === 200 && Number.isInteger(body.nextSeq),
    })
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
