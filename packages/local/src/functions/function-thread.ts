import { Worker } from 'node:worker_threads'
import { FunctionError, FunctionTimeout } from './errors.ts'
import { type ThreadResponse, type FunctionThreadData, type ThreadRequest, ready } from './protocol.ts'

type QuestionBody = ThreadRequest extends infer Kind ? (Kind extends ThreadRequest ? Omit<Kind, 'id'> : never) : never

interface Waiting {
  resolve: (result: unknown) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
  functionName: string
}

export interface ThreadOptions extends FunctionThreadData {
  name: string
  environment: Record<string, string>
}

/** How a thread ended. */
export interface Death {
  reason: string
  /** False if the thread failed to start. */
  hasStarted: boolean
}

/** Time without a response after which a thread counts as hung. */
const pingTimeoutMs = 1000

/**
 * As much as most functions have on Lambda, and several times their use. Without a limit, V8 adapts to the machine's
 * memory and collects garbage much later.
 */
const resourceLimits = { maxOldGenerationSizeMb: 512 }

/** The handle of one thread of functions. It runs many invocations concurrently; they fail if it dies. */
export class FunctionThread {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #hasStarted = false

  constructor({ name, environment, functionsDir, suffix }: ThreadOptions, onDeath: (death: Death) => void) {
    const workerData: FunctionThreadData = { functionsDir, suffix }
    const options = { name, env: environment, workerData, resourceLimits }
    this.#worker = new Worker(new URL('thread.ts', import.meta.url), options)
    this.#worker.on('message', (message: typeof ready | ThreadResponse) => {
      if (message === ready) this.#hasStarted = true
      else this.#settle(message)
    })
    let reason = 'the thread ended'
    this.#worker.on('error', (error: unknown) => {
      reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
    })
    this.#worker.on('exit', () => {
      for (const { reject, timer, functionName } of this.#waiting.values()) {
        clearTimeout(timer)
        reject(new FunctionError(functionName, { name: 'ThreadEnded', message: reason, stack: '', isCounted: false }))
      }
      this.#waiting.clear()
      onDeath({ reason, hasStarted: this.#hasStarted })
    })
  }

  /** Number of outstanding responses. */
  get load(): number {
    return this.#waiting.size
  }

  /** Imports a function before its first invocation. */
  async warm(functionName: string, timeoutMs: number): Promise<void> {
    await this.#ask({ kind: 'load', functionName }, functionName, timeoutMs)
  }

  /** Runs a function; rejects with `FunctionError` or `FunctionTimeout`. */
  async invoke(functionName: string, event: unknown, requestId: string, timeoutMs: number): Promise<unknown> {
    const deadlineMs = Date.now() + timeoutMs
    const question = { kind: 'invoke', functionName, event, requestId, deadlineMs } as const
    try {
      return await this.#ask(question, functionName, timeoutMs)
    } catch (error) {
      if (error instanceof FunctionTimeout) this.#endIfHung()
      throw error
    }
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #ask(question: QuestionBody, functionName: string, timeoutMs: number): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id)
        reject(new FunctionTimeout(functionName, timeoutMs))
      }, timeoutMs)
      this.#waiting.set(id, { resolve, reject, timer, functionName })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
      this.#worker.postMessage({ ...question, id })
    })
  }

  /**
   * A busy loop in one function would block all others of the thread. A starting thread runs no function yet and may
   * take longer than a response.
   */
  #endIfHung(): void {
    if (!this.#hasStarted) return
    this.#ask({ kind: 'ping' }, 'ping', pingTimeoutMs).catch(() => this.#worker.terminate())
  }

  #settle(answer: ThreadResponse): void {
    const waiting = this.#waiting.get(answer.id)
    if (waiting === undefined) return
    this.#waiting.delete(answer.id)
    clearTimeout(waiting.timer)
    if ('failure' in answer) waiting.reject(new FunctionError(waiting.functionName, answer.failure))
    else waiting.resolve(answer.result)
  }
}
