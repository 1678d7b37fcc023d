import * as z from 'zod'

/** A request to a thread that runs functions. Each gets one response with the same id. */
export type ThreadRequest =
  | { id: number; kind: 'invoke'; functionName: string; event: unknown; requestId: string; deadlineMs: number }
  | { id: number; kind: 'load'; functionName: string }
  | { id: number; kind: 'ping' }

/** The result of the function, or its error. */
export type ThreadResponse = { id: number; result: unknown } | { id: number; failure: SerializedError }

/** The first message of a thread, when it accepts requests. */
export const ready = 'ready'

/** An error of a function, serialised for another thread. */
export interface SerializedError {
  name: string
  message: string
  stack: string
  /** Whether the function has counted the error itself. */
  isCounted: boolean
}

/** The location of the functions: `<functionsDir>/<name><suffix>`, each with an export `handler`. */
export const FunctionThreadData = z.object({ functionsDir: z.string(), suffix: z.string() })
export type FunctionThreadData = z.infer<typeof FunctionThreadData>
