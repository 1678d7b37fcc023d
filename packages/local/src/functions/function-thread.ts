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

/** Where a thread runs and what it sees. */
export interface ThreadOptions extends FunctionThreadData {
  name: string
  environment: Record<string, string>
}

/** How a thread ended. */
export interface Death {
  reason: string
  /** Otherwise it could not even start. */
  hasStarted: boolean
}

/** How long a thread may be deaf before it counts as hung. */
const pingTimeoutMs = 1000

/**
 * As much as most functions have on Lambda, and several times what they use. Without a limit V8 goes by the memory of
 * the whole machine, and lets much more garbage lie about before it collects.
 */
const resourceLimits = { maxOldGenerationSizeMb: 512 }

/** One thread of functions, seen from outside. It runs many invocations at once, and they fail with it. */
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
        reject(new FunctionError(functionName, { name: 'ThreadEnded', message: reason, stack: '', isTallied: false }))
      }
      this.#waiting.clear()
      onDeath({ reason, hasStarted: this.#hasStarted })
    })
  }

  /** How many answers are outstanding. */
  get load(): number {
    return this.#waiting.size
  }

  /** Imports a function, so that its first invocation does not wait for that. */
  async warm(functionName: string, timeoutMs: number): Promise<void> {
    await this.#ask({ kind: 'load', functionName }, functionName, timeoutMs)
  }

  /** Runs a function; rejects with `FunctionFailed` or `FunctionTimedOut`. */
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
   * A busy loop in one function would starve every other one of the thread for ever. One that is still starting runs
   * no function yet: on a busy machine that takes longer than an answer may.
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
