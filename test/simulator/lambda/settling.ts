/** When what is Pending or InProgress gets ready: a little later, or as soon as a test lets it. */
export interface Settling {
  /** Does the work after the delay, unless it is held. */
  later: (work: () => Promise<void>) => void
  /** From now on nothing gets ready. */
  hold: () => void
  /** All that was held gets ready now, and what comes after it as usual; resolves when the held work is done. */
  release: () => Promise<void>
  close: () => void
}

export function createSettling(delayMs: number): Settling {
  const timers = new Set<NodeJS.Timeout>()
  let held: (() => Promise<void>)[] | undefined
  return {
    later: (work) => {
      if (held !== undefined) {
        held.push(work)
        return
      }
      const timer = setTimeout(() => {
        timers.delete(timer)
        void work()
      }, delayMs)
      timers.add(timer)
    },
    hold: () => {
      held ??= []
    },
    release: async () => {
      const works = held ?? []
      held = undefined
      await Promise.all(works.map((work) => work()))
    },
    close: () => {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
