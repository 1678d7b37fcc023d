import { setImmediate as nextTurn } from 'node:timers/promises'

export const chunk = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))

/** Works on `limit` items at a time. After an error, starts no other item, waits for those in progress, and throws. */
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

/** Limits the concurrent calls per name in this process. Excess calls fail at once instead of waiting. */
export function bulkhead(newError: () => Error): Bulkhead {
  const runningCounts = new Map<string, number>()
  return async (name, limit, work) => {
    const runningCount = runningCounts.get(name) ?? 0
    if (runningCount >= limit) throw newError()
    runningCounts.set(name, runningCount + 1)
    try {
      return await work()
    } finally {
      const remainingCount = (runningCounts.get(name) ?? 1) - 1
      if (remainingCount === 0) runningCounts.delete(name)
      else runningCounts.set(name, remainingCount)
    }
  }
}

/**
 * Runs `work` at most once at a time per name in this process. Calls during a run return at once, and `rerun` is called
 * once after the run, so that no queue slot is held while waiting.
 */
export function singleFlight(
  work: (name: string) => Promise<void>,
  rerun: (name: string) => Promise<void>,
): (name: string) => Promise<void> {
  const runningNames = new Set<string>()
  const requestedNames = new Set<string>()
  return async (name) => {
    if (runningNames.has(name)) {
      requestedNames.add(name)
      return
    }
    runningNames.add(name)
    try {
      await work(name)
    } finally {
      runningNames.delete(name)
      if (requestedNames.delete(name)) await rerun(name)
    }
  }
}

/**
 * Calls with the same key in one turn of the event loop share one run of `work`, with the items of all calls. If this
 * run fails, `work` runs again for each call, unless the error is shared by all calls.
 */
export function coalesced<Item>(
  work: (key: string, items: readonly Item[]) => Promise<void>,
  isShared: (error: unknown) => boolean,
): (key: string, items: readonly Item[]) => Promise<void> {
  const pending = new Map<string, { items: Set<Item>; callCount: number; run: Promise<void> }>()
  const begin = (key: string) => {
    const items = new Set<Item>()
    const run = nextTurn().then(() => {
      pending.delete(key)
      return work(key, [...items])
    })
    const shared = { items, callCount: 0, run }
    pending.set(key, shared)
    return shared
  }
  return async (key, items) => {
    const shared = pending.get(key) ?? begin(key)
    shared.callCount++
    for (const item of items) shared.items.add(item)
    try {
      await shared.run
    } catch (error) {
      if (shared.callCount === 1 || isShared(error)) throw error
      await work(key, items)
    }
  }
}

/** Rejects when the signal is aborted, even if `work` does not observe the signal. */
export const untilAborted = <Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(new Error('There was no response in time.')), { once: true })
    work().then(resolve, reject)
  })
