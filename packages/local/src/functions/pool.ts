import type { MessagePort } from 'node:worker_threads'
import type { Log } from '../log.ts'
import { FunctionError } from './errors.ts'
import { FunctionThread } from './function-thread.ts'

export interface PoolOptions {
  threadCount: number
  functionsDir: string
  /** `.ts` by default. */
  suffix?: string
  /** Time limit for the import of a function; a minute by default. */
  warmUpTimeoutMs?: number
  environment: Record<string, string>
  timeoutMsOf: (functionName: string) => number
  /** Returns a port for `callOver` for each thread; without it, the functions use HTTP. */
  connect?: (() => MessagePort) | undefined
  log: Log
}

/** Runs functions on threads, so that a busy function does not block the main thread. */
export interface FunctionPool {
  /** Rejects with `FunctionError` or `FunctionTimeout`. */
  invoke: (functionName: string, event: unknown, requestId?: string) => Promise<unknown>
  /** Imports functions on every thread; rejects if one cannot be imported. */
  warmUp: (functionNames: readonly string[]) => Promise<void>
  /** Ends the threads; running invocations fail. */
  close: () => Promise<void>
}

const defaultWarmUpTimeoutMs = 60_000

const noThreadError = { name: 'NoThread', message: 'no thread has started', stack: '', isCounted: false }

const restartDelayMs = 1000

/** Starts the threads. Replaces a thread that ends: immediately, or after a delay if it failed to start. */
export function startPool(options: PoolOptions): FunctionPool {
  const { threadCount, functionsDir, suffix = '.ts', environment, timeoutMsOf, connect, log } = options
  const { warmUpTimeoutMs = defaultWarmUpTimeoutMs } = options
  let isClosed = false
  const threads = new Map<number, FunctionThread>()

  const startThread = (slot: number) => {
    const name = `functions-${slot}`
    const emulatorPort = connect?.()
    const threadOptions = { name, environment, functionsDir, suffix, emulatorPort }
    const thread = new FunctionThread(threadOptions, ({ reason, hasStarted }) => {
      if (isClosed) return
      log(hasStarted ? 'a function thread ended and is replaced' : 'a function thread does not start', {
        thread: name,
        reason,
      })
      if (hasStarted) return startThread(slot)
      threads.delete(slot)
      setTimeout(() => isClosed || startThread(slot), restartDelayMs).unref()
    })
    threads.set(slot, thread)
  }
  for (let slot = 0; slot < threadCount; slot++) startThread(slot)

  const selectThread = (functionName: string) => {
    const [leastLoadedThread] = [...threads.values()].toSorted((a, b) => a.load - b.load)
    if (leastLoadedThread === undefined) throw new FunctionError(functionName, noThreadError)
    return leastLoadedThread
  }

  return {
    invoke: async (functionName, event, requestId = crypto.randomUUID()) =>
      selectThread(functionName).invoke(functionName, event, requestId, timeoutMsOf(functionName)),
    warmUp: async (functionNames) => {
      const loads = [...threads.values()].flatMap((thread) =>
        functionNames.map((functionName) => thread.warmUp(functionName, warmUpTimeoutMs)),
      )
      await Promise.all(loads)
    },
    close: async () => {
      isClosed = true
      await Promise.all([...threads.values()].map((thread) => thread.end()))
    },
  }
}
