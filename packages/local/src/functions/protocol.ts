import * as z from 'zod'

/** What the platform's thread asks of a thread that runs functions. Each question has one answer under the same id. */
export type ThreadRequest =
  | { id: number; kind: 'invoke'; functionName: string; event: unknown; requestId: string; deadlineMs: number }
  | { id: number; kind: 'load'; functionName: string }
  | { id: number; kind: 'ping' }

/** What comes back: the result of the function, or why there is none. */
export type ThreadResponse = { id: number; result: unknown } | { id: number; failure: Failure }

/** What a thread says first, once it can be asked. */
export const ready = 'ready'

/** An error that a function threw, fit to cross threads. */
export interface Failure {
  name: string
  message: string
  stack: string
  /** The function has counted it itself. */
  isTallied: boolean
}

/** Where a thread finds the functions: `<functionsDir>/<name><suffix>`, each with an export `handler`. */
export const FunctionThreadData = z.object({ functionsDir: z.string(), suffix: z.string() })
export type FunctionThreadData = z.infer<typeof FunctionThreadData>
