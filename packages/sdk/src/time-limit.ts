/** Thrown if an operation exceeds its time limit. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
}

/**
 * A signal that aborts after `limitMs`, unless it is disposed of first. Unlike `AbortSignal.timeout`, its timer keeps
 * the process alive.
 */
export function timeLimit(name: string, limitMs: number): { signal: AbortSignal } & Disposable {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new TimeLimitError(`${name} took longer than ${limitMs} ms.`)), limitMs)
  return { signal: limit.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}

/**
 * Runs the work with a signal that aborts at the limit or with one of `signals`. Rejects at that moment, even if the
 * work ignores its signal.
 */
export async function withinLimit<Result>(
  name: string,
  limitMs: number,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  using limit = timeLimit(name, limitMs)
  const signal = AbortSignal.any([limit.signal, ...signals])
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([aborted, start(signal, work)])
  } finally {
    // A dependent signal with listeners is retained by its sources, here until the module stops.
    signal.removeEventListener('abort', abort)
  }
}

// An async function, so that a synchronous error of the work becomes a rejection.
async function start<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Result | Promise<Result>) {
  signal.throwIfAborted()
  return work(signal)
}
