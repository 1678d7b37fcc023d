/** What took longer than it may. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError'
}

/**
 * A signal that aborts when time is up, until it is disposed of. The timer keeps the process alive: that of
 * `AbortSignal.timeout` would let a process end that waits for nothing else.
 */
export function timeLimit(what: string, limitMs: number): { signal: AbortSignal } & Disposable {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new TimeLimitError(`${what} took longer than ${limitMs} ms.`)), limitMs)
  return { signal: limit.signal, [Symbol.dispose]: () => clearTimeout(timer) }
}

/** Works until the limit or one of the signals says no, and rejects then, whether or not the work listens to its signal. */
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
    // A signal that somebody listens to lives for as long as what it follows: here until the module stops.
    signal.removeEventListener('abort', giveUp)
  }
}

/** A throw of the work becomes a rejection, so that there is one way to fail. */
async function begun<Result>(signal: AbortSignal, work: (signal: AbortSignal) => Result | Promise<Result>) {
  signal.throwIfAborted()
  return work(signal)
}
