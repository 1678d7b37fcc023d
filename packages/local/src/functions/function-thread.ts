import { Worker } from 'node:worker_threads'
import { FunctionError, FunctionTimeout } from './errors.ts'
import {
  type ThreadResponse,
  type FunctionThreadData,
  type ThreadRequest,
  monotonicMs,
  readyMessage,
} from './protocol.ts'

type RequestBody = ThreadRequest extends infer Kind ? (Kind extends ThreadRequest ? Omit<Kind, 'id'> : never) : never

interface PendingCall {
  resolve: (result: unknown) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
  functionName: string
}

export interface ThreadOptions extends FunctionThreadData {
  name: string
  environment: Record<string, string>
}

export interface ThreadExit {
  reason: string
  /** False if the thread failed to start. */
  hasStarted: boolean
}

/** A thread that does not respond within this time counts as hung. */
const pingTimeoutMs = 1000

/**
 * As much memory as most functions have on Lambda. Without a limit, V8 adapts the heap to the machine's memory and
 * collects garbage later.
 */
const resourceLimits = { maxOldGenerationSizeMb: 512 }

/** Runs many invocations concurrently on one thread; they all fail if the thread ends. */
export class FunctionThread {
  readonly #worker: Worker
  readonly #pendingCalls = new Map<number, PendingCall>()
  #lastId = 0
  #hasStarted = false

  constructor(
    { name, environment, functionsDir, suffix, emulatorPort }: ThreadOptions,
    onExit: (exit: ThreadExit) => void,
  ) {
    const workerData: FunctionThreadData = { functionsDir, suffix, emulatorPort }
    const transferList = emulatorPort === undefined ? [] : [emulatorPort]
    const options = { name, env: environment, workerData, transferList, resourceLimits }
    this.#worker = new Worker(new URL('thread.ts', import.meta.url), options)
    this.#worker.on('message', (message: typeof readyMessage | ThreadResponse) => {
      if (message === readyMessage) this.#hasStarted = true
      else this.#settle(message)
    })
    let reason = 'the thread ended'
    this.#worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    })
    this.#worker.on('exit', () => {
      for (const { reject, timer, functionName } of this.#pendingCalls.values()) {
        clearTimeout(timer)
        reject(new FunctionError(functionName, { name: 'ThreadEnded', message: reason, stack: '', isCounted: false }))
      }
      this.#pendingCalls.clear()
      onExit({ reason, hasStarted: this.#hasStarted })
    })
  }

  /** Number of requests without a response. */
  get load(): number {
    return this.#pendingCalls.size
  }

  async warmUp(functionName: string, timeoutMs: number): Promise<void> {
    await this.#send({ kind: 'load', functionName }, functionName, timeoutMs)
  }

  /** Rejects with `FunctionError` or `FunctionTimeout`. */
  async invoke(functionName: string, event: unknown, requestId: string, timeoutMs: number): Promise<unknown> {
    const deadlineMs = monotonicMs() + timeoutMs
    const request = { kind: 'invoke', functionName, event, requestId, deadlineMs } as const
    try {
      return await this.#send(request, functionName, timeoutMs)
    } catch (error) {
      if (error instanceof FunctionTimeout) this.#terminateIfHung()
      throw error
    }
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #send(request: RequestBody, functionName: string, timeoutMs: number): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pendingCalls.delete(id)
        reject(new FunctionTimeout(functionName, timeoutMs))
      }, timeoutMs)
      this.#pendingCalls.set(id, { resolve, reject, timer, functionName })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
      this.#worker.postMessage({ ...request, id })
    })
  }

  /**
   * A busy loop in one function would block all others on the thread. A starting thread may take longer to respond than
   * the limit, but runs no function yet.
   */
  #terminateIfHung(): void {
    if (!this.#hasStarted) return
    this.#send({ kind: 'ping' }, 'ping', pingTimeoutMs).catch(() => this.#worker.terminate())
  }

  #settle(response: ThreadResponse): void {
    const pendingCall = this.#pendingCalls.get(response.id)
    if (pendingCall === undefined) return
    this.#pendingCalls.delete(response.id)
    clearTimeout(pendingCall.timer)
    if ('failure' in response) pendingCall.reject(new FunctionError(pendingCall.functionName, response.failure))
    else pendingCall.resolve(response.result)
  }
}
