/**
 * Runs work for a name at most once at a time in this process. Calls during a run return at once, and `again` is called
 * after it, so that no queue slot is held while waiting.
 */
export function singleFlight(
  work: (name: string) => Promise<void>,
  again: (name: string) => Promise<void>,
): (name: string) => Promise<void> {
  const running = new Set<string>()
  const asked = new Set<string>()
  return async (name) => {
    if (running.has(name)) {
      asked.add(name)
      return
    }
    running.add(name)
    try {
      await work(name)
    } finally {
      running.delete(name)
      if (asked.delete(name)) await again(name)
    }
  }
}
