/**
 * Work that finishes all there is to do when it begins, asked for many times at once: calls that meet in one process share
 * a run that begins after them. Whoever comes while one is under way waits for the next, together with all others.
 */

interface Run {
  now: Promise<void>
  next?: Promise<void>
}

/** Makes work of this kind: one run at a time for each name. */
export function joined(work: (name: string) => Promise<void>): (name: string) => Promise<void> {
  const runs = new Map<string, Run>()

  const run = async (name: string): Promise<void> => {
    try {
      await work(name)
    } finally {
      runs.delete(name)
    }
  }
  const join = (name: string): Promise<void> => {
    const current = runs.get(name)
    if (current === undefined) {
      const now = run(name)
      runs.set(name, { now })
      return now
    }
    const again = () => join(name)
    return (current.next ??= current.now.then(again, again))
  }
  return join
}
