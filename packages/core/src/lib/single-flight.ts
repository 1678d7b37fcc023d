/**
 * Work that takes up all there is to do when it begins, asked for many times at once: in one process one run at a time for
 * each name. Whoever comes while one is under way goes at once, and when it has ended `again` sees to it that another
 * begins: nobody holds a slot of a queue only to wait.
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
