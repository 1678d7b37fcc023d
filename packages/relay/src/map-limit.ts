/** Calls the function for every item, at most `limit` at a time. The results are in the order of the items. */
export async function mapLimit<Item, Result>(
  limit: number,
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = Array.from<Result>({ length: items.length })
  const queue = items.entries()
  const work = async () => {
    for (const [index, item] of queue) results[index] = await call(item)
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work))
  return results
}
