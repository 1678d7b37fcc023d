/** What is to be done beside other things, and must not meet some of them. */
export interface Run<Item> {
  item: Item
  /** What it needs. */
  touches: ReadonlySet<string>
  /** What it takes away from everybody. */
  breaks: ReadonlySet<string>
}

const meet = <Item>(one: Run<Item>, other: Run<Item>): boolean =>
  [...one.breaks].some((name) => other.touches.has(name)) || [...other.breaks].some((name) => one.touches.has(name))

/**
 * Does everything, in as many lanes as there are; nothing runs beside something that takes away what it needs. Answers in the
 * order in which things were given.
 */
export async function inLanes<Lane, Item, Result>(
  lanes: readonly Lane[],
  runs: readonly Run<Item>[],
  work: (lane: Lane, item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Map<Run<Item>, Result>()
  const waiting = [...runs]
  const underWay = new Map<Run<Item>, Promise<void>>()
  const next = () => waiting.find((run) => [...underWay.keys()].every((other) => !meet(run, other)))
  const walk = async (lane: Lane): Promise<void> => {
    while (waiting.length > 0) {
      const run = next()
      if (run === undefined) await Promise.race(underWay.values())
      else {
        waiting.splice(waiting.indexOf(run), 1)
        const done = work(lane, run.item).then((result) => void results.set(run, result))
        underWay.set(
          run,
          done.finally(() => underWay.delete(run)),
        )
        await done
      }
    }
  }
  await Promise.all(lanes.map(walk))
  return runs.map((run) => results.get(run)!)
}
