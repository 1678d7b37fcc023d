/** Splits items into chunks of a size; the last one may be smaller. */
export const chunk = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, part) => items.slice(part * size, (part + 1) * size))

/**
 * Runs the work for each item in order, with limited concurrency. After an error no more is started; throws once the
 * running work has ended.
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
