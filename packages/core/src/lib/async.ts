export const chunk = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))

/** After an error, starts no more items, waits for the running ones, and throws. */
export async function forEachLimit<Item>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const queue = items.values()
  const errors: unknown[] = []
  const runWorker = async () => {
    for (const item of queue) {
      try {
        await work(item)
      } catch (error) {
        errors.push(error)
      }
      if (errors.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, runWorker))
  if (errors.length > 0) throw errors[0]
}

export type Bulkhead = <Result>(name: string, limit: number, work: () => Promise<Result>) => Promise<Result>

/** Limits the concurrency of this process by name. Excess work fails at once instead of waiting. */
export function bulkhead(newError: () => Error): Bulkhead {
  const running = new Map<string, number>()
  return async (name, limit, work) => {
    const runningCount = running.get(name) ?? 0
    if (runningCount >= limit) throw newError()
    running.set(name, runningCount + 1)
    try {
      return await work()
    } finally {
      const remainingCount = (running.get(name) ?? 1) - 1
      if (remainingCount === 0) running.delete(name)
      else running.set(name, remainingCount)
    }
  }
}

/**
 * Runs work for a name at most once at a time in this process. Calls during a run return at once, and `rerun` is called
 * after it, so that no queue slot is held while waiting.
 */
export function singleFlight(
  work: (name: string) => Promise<void>,
  rerun: (name: string) => Promise<void>,
): (name: string) => Promise<void> {
  const running = new Set<string>()
  const requested = new Set<string>()
  return async (name) => {
    if (running.has(name)) {
      requested.add(name)
      return
    }
    running.add(name)
    try {
      await work(name)
    } finally {
      running.delete(name)
      if (requested.delete(name)) await rerun(name)
    }
  }
}

/** Rejects when the signal fires, because not all calls observe it. */
export const untilAborted = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(new Error('There was no response in time.')), { once: true })
    work().then(resolve, reject)
  })
