/** Thrown if an operation exceeds its time limit. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
}

/**
 * Returns a signal that aborts after `limitMs`, unless the result is disposed of first. Unlike with
 * `AbortSignal.timeout`, the timer keeps the process alive.
 */
export function startTimeLimit(name: string, limitMs: number): { signal: AbortSignal } & Disposable {
  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(new TimeLimitError(`${name} took longer than ${limitMs} ms.`)), limitMs)
  return { signal: timeout.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}

/**
 * Runs the work with a signal that aborts at the limit or with one of `signals`. Rejects as soon as the signal aborts,
 * even if the work ignores it.
 */
export async function withinLimit<Result>(
  name: string,
  limitMs: number,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  using timeLimit = startTimeLimit(name, limitMs)
  const signal = AbortSignal.any([timeLimit.signal, ...signals])
  const { promise: abortion, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([abortion, startWork(signal, work)])
  } finally {
    // The sources of a dependent signal retain it while it has listeners, here until the module stops.
    signal.removeEventListener('abort', abort)
  }
}

// The function is async, so that a synchronous error of the work becomes a rejection.
async function startWork<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Result | Promise<Result>) {
  signal.throwIfAborted()
  return work(signal)
}
