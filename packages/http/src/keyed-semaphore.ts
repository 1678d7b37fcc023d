/** Works on at most so many pieces of work of one name at once; the others wait, in the order in which they came. */
export type KeyedSemaphore = <Result>(name: string, work: () => Promise<Result>) => Promise<Result>

interface Gate {
  inside: number
  waiting: (() => void)[]
}

/** A gate for each name. Names that nobody works for are forgotten. */
export function keyedSemaphore(atOnce: number): KeyedSemaphore {
  const gates = new Map<string, Gate>()

  const enter = async (name: string): Promise<void> => {
    const gate = gates.get(name) ?? { inside: 0, waiting: [] }
    gates.set(name, gate)
    // Whoever leaves hands its place on.
    if (gate.inside === atOnce) await new Promise<void>((resolve) => gate.waiting.push(resolve))
    else gate.inside++
  }
  const leave = (name: string): void => {
    const gate = gates.get(name)
    const next = gate?.waiting.shift()
    if (next !== undefined) next()
    else if (gate !== undefined && --gate.inside === 0) gates.delete(name)
  }
  return async (name, work) => {
    await enter(name)
    try {
      return await work()
    } finally {
      leave(name)
    }
  }
}
