import type { IndexName, Key } from './keys.ts'
import { firstOf, type Page, upperBoundBelow } from './paging.ts'
import { count, type Item, query, queryAll } from './table.ts'

/** Indexes contain only keys and usually lag behind writes by less than 1 s. A query returns 1 MB, about 5,000 keys. */

/** `from` and `to` are ids, both inclusive. `limit` is the maximum number of keys. */
export interface IndexRange {
  index: Exclude<IndexName, 'due'>
  pk: string
  from?: string
  to?: string
  isNewestFirst?: boolean
  limit?: number
}

export interface IndexedKey extends Key {
  id: string
}

const keyOf = ({ pk, sk, id }: Item): IndexedKey => ({ pk: String(pk), sk: String(sk), id: String(id) })

export const indexedKeys = async ({ limit, ...range }: IndexRange): Promise<IndexedKey[]> =>
  (await queryAll(range, limit)).map(keyOf)

/** Reads the keys of a page from the nearer end of the range, so that the last pages cost as little as the first. */
async function pageOfKeys(range: IndexRange, keyCount: number, { page, pageSize }: Page): Promise<IndexedKey[]> {
  const offset = (page - 1) * pageSize
  if (offset >= keyCount) return []
  const end = Math.min(offset + pageSize, keyCount)
  const isNewestFirst = offset <= keyCount - end
  const limit = isNewestFirst ? end : keyCount - offset
  const pageKeys = (await indexedKeys({ ...range, isNewestFirst, limit })).slice(limit - (end - offset))
  return isNewestFirst ? pageKeys : pageKeys.toReversed()
}

export interface KeyPage {
  keys: IndexedKey[]
  totalCount: number
  next?: string | undefined
}

const positionOf = ({ id }: IndexedKey): string => id

/** Takes the keys of a page. `foundKeys` has more keys than the page if a next page exists. */
export function firstKeys(foundKeys: readonly IndexedKey[], pageSize: number): Omit<KeyPage, 'totalCount'> {
  const { items, next } = firstOf(foundKeys, pageSize, positionOf)
  return { keys: items, next }
}

export const rangeBefore = <Range extends Pick<IndexRange, 'to'>>(range: Range, { before }: Page): Range => {
  if (before === undefined) return range
  const to = upperBoundBelow(before)
  return { ...range, to: range.to === undefined || to < range.to ? to : range.to }
}

/** A page that ends at or before this offset is read from the newest key, concurrently with the total. */
const maxDirectOffset = 1000

/** Reads a page, newest first. The total may lag, so it is corrected if the index has fewer or more keys. */
export async function pageOfRange(range: IndexRange, total: () => Promise<number>, page: Page): Promise<KeyPage> {
  const { pageSize, before } = page
  const offset = (page.page - 1) * pageSize
  const end = offset + pageSize
  if (end > maxDirectOffset) return deepPage(range, await total(), page)
  const newestKeys = indexedKeys({ ...rangeBefore(range, page), isNewestFirst: true, limit: end + 1 })
  const [keyCount, foundKeys] = await Promise.all([total(), newestKeys])
  const isComplete = foundKeys.length < end && before === undefined
  return {
    ...firstKeys(foundKeys.slice(offset), pageSize),
    totalCount: isComplete ? foundKeys.length : Math.max(keyCount, foundKeys.length),
  }
}

/** `keyCount` may lag, so every full page has a next page, which may be empty. */
async function deepPage(range: IndexRange, keyCount: number, page: Page): Promise<KeyPage> {
  const offset = (page.page - 1) * page.pageSize
  const keys = await pageOfKeys(range, keyCount, page)
  const isShort = keys.length > 0 && keys.length < Math.min(page.pageSize, keyCount - offset)
  return {
    keys,
    totalCount: isShort ? offset + keys.length : keyCount,
    next: keys.length === page.pageSize ? keys.at(-1)?.id : undefined,
  }
}

/** Reads a page of the intersection of the ranges, newest first, without holding the ranges in memory. */
export async function pageOfAll(ranges: readonly IndexRange[], page: Page): Promise<KeyPage> {
  const [range, ...otherRanges] = ranges
  if (range === undefined) return { keys: [], totalCount: 0 }
  if (otherRanges.length === 0) return pageOfRange(range, () => count(range), page)
  const offset = (page.page - 1) * page.pageSize
  const { before = '~', pageSize } = page
  const foundKeys: IndexedKey[] = []
  let totalCount = 0
  for await (const key of otherRanges.map(walk).reduce(intersection, walk(range))) {
    if (totalCount >= offset && foundKeys.length <= pageSize && key.id < before) foundKeys.push(key)
    totalCount++
  }
  return { ...firstKeys(foundKeys, pageSize), totalCount }
}

type KeyStream = AsyncGenerator<IndexedKey, void>

/** Yields the keys of a range in chunks of at most `limit`, newest first. */
export async function* chunksOf(range: IndexRange, limit: number): AsyncGenerator<IndexedKey[], void> {
  let after: Item | undefined
  do {
    const page = await query({ ...range, isNewestFirst: true, limit, ...(after && { after }) })
    if (page.items.length > 0) yield page.items.map(keyOf)
    after = page.next
  } while (after !== undefined)
}

/** Yields the keys of a range, newest first. Holds at most one query result in memory. */
async function* walk(range: IndexRange): KeyStream {
  let after: Item | undefined
  do {
    const page = await query({ ...range, isNewestFirst: true, ...(after && { after }) })
    yield* page.items.map(keyOf)
    after = page.next
  } while (after !== undefined)
}

/** Yields the keys that both streams contain. Both must be in descending order. */
async function* intersection(left: KeyStream, right: KeyStream): KeyStream {
  let [leftResult, rightResult] = await Promise.all([left.next(), right.next()])
  while (!leftResult.done && !rightResult.done) {
    const [leftId, rightId] = [leftResult.value.id, rightResult.value.id]
    if (leftId === rightId) yield leftResult.value
    ;[leftResult, rightResult] = await Promise.all([
      leftId >= rightId ? left.next() : leftResult,
      leftId <= rightId ? right.next() : rightResult,
    ])
  }
}
