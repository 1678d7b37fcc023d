/** Items in parts of a size; the last one may be smaller. */
export const chunk = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, part) => items.slice(part * size, (part + 1) * size))

/**
 * Does some work for each item, so many at once, and begins in their order. When one throws nothing else is begun, and the
 * caller hears of it when what was under way has ended.
 */
export async function forEachLimit<Item>(
  count: number,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values()
  const errors: unknown[] = []
  const lane = async () => {
    for (const item of left) {
      try {
        await work(item)
      } catch (error) {
        errors.push(error)
      }
      if (errors.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, lane))
  if (errors.length > 0) throw errors[0]
}
