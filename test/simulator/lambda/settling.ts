/** When Pending and InProgress end: after a delay, or when a test releases them. */
export interface Settling {
  later: (work: () => Promise<void>) => void
  hold: () => void
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
