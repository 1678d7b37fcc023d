import { MessagePort } from 'node:worker_threads'
import * as z from 'zod'

/** A thread sends one response with the same id for each request. */
export type ThreadRequest =
  | { id: number; kind: 'invoke'; functionName: string; event: unknown; requestId: string; deadlineMs: number }
  | { id: number; kind: 'load'; functionName: string }
  | { id: number; kind: 'ping' }

export type ThreadResponse = { id: number; result: unknown } | { id: number; failure: SerializedError }

/** Reads a clock that, unlike `performance.now`, is the same in all threads. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** The first message of a thread, sent when it accepts requests. */
export const readyMessage = 'ready'

export interface SerializedError {
  name: string
  message: string
  stack: string
  /** Whether the function has counted the error itself. */
  isCounted: boolean
}

/** Functions are at `<functionsDir>/<name><suffix>` and export a `handler`. */
export const FunctionThreadData = z.object({
  functionsDir: z.string(),
  suffix: z.string(),
  /** Connection to the emulators; without it, the functions use HTTP. */
  emulatorPort: z.instanceof(MessagePort).optional(),
})
export type FunctionThreadData = z.infer<typeof FunctionThreadData>
