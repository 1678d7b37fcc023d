/** Thrown if an operation exceeds its time limit. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
}

/**
 * Returns a signal that aborts when the time is up, until it is disposed of. Unlike that of `AbortSignal.timeout`, the
 * timer keeps the process alive.
 */
export function timeLimit(what: string, limitMs: number): { signal: AbortSignal } & Disposable {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new TimeLimitError(`${what} took longer than ${limitMs} ms.`)), limitMs)
  return { signal: limit.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}

/** Runs the work until the limit or a signal aborts. Rejects then, even if the work ignores its signal. */
export async function withinLimit<Result>(
  what: string,
  limitMs: number,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  using limit = timeLimit(what, limitMs)
  const signal = AbortSignal.any([limit.signal, ...signals])
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const giveUp = (): void => reject(signal.reason)
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    return await Promise.race([aborted, begun(signal, work)])
  } finally {
    // A dependent signal with listeners lives as long as its sources: here until the module stops.
    signal.removeEventListener('abort', giveUp)
  }
}

/** Converts a synchronous error of the work to a rejection. */
async function begun<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Result | Promise<Result>) {
  signal.throwIfAborted()
  return work(signal)
}
