import { type IndexName, type Key } from './keys.ts'
import { below, firstOf, type Page } from './paging.ts'
import { count, type Item, query, queryAll } from './table.ts'

/** Indexes contain keys only and lag behind writes by less than a second. A query returns about 5,000 keys (1 MB). */

/** `from` and `to` are ids, both inclusive. `limit` is the maximum number of keys. */
export interface IndexRange {
  index: Exclude<IndexName, 'due'>
  pk: string
  from?: string
  to?: string
  newestFirst?: boolean
  limit?: number
}

export interface IndexedKey extends Key {
  id: string
}

const keyOf = ({ pk, sk, id }: Item): IndexedKey => ({ pk: String(pk), sk: String(sk), id: String(id) })

export const indexedKeys = async ({ limit, ...range }: IndexRange): Promise<IndexedKey[]> =>
  (await queryAll(range, limit)).map(keyOf)

/** Newest first. Reads from the nearer end of the range, so that the last pages cost as little as the first ones. */
async function pageOfKeys(range: IndexRange, count: number, { page, pageSize }: Page): Promise<IndexedKey[]> {
  const offset = (page - 1) * pageSize
  if (offset >= count) return []
  const end = Math.min(offset + pageSize, count)
  const newestFirst = offset <= count - end
  const limit = newestFirst ? end : count - offset
  const pageKeys = (await indexedKeys({ ...range, newestFirst, limit })).slice(limit - (end - offset))
  return newestFirst ? pageKeys : pageKeys.toReversed()
}

export interface KeyPage {
  keys: IndexedKey[]
  totalCount: number
  next?: string | undefined
}

const positionOf = ({ id }: IndexedKey): string => id

/** Takes the keys of a page. `found` has one key more if a next page exists. */
export function firstKeys(found: readonly IndexedKey[], pageSize: number): Omit<KeyPage, 'totalCount'> {
  const { items, next } = firstOf(found, pageSize, positionOf)
  return { keys: items, next }
}

/** The part of the range that is older than the cursor. */
export const olderThan = (range: IndexRange, { before }: Page): IndexRange => {
  if (before === undefined) return range
  const to = below(before)
  return { ...range, to: range.to === undefined || to < range.to ? to : range.to }
}

/** Up to this offset, a page is read from the newest key, concurrently with the total. */
const directOffsets = 1000

/** Newest first. The total may lag, so it is corrected if the index has fewer or more keys. */
export async function pageOfRange(range: IndexRange, total: () => Promise<number>, page: Page): Promise<KeyPage> {
  const { pageSize, before } = page
  const offset = (page.page - 1) * pageSize
  const end = offset + pageSize
  if (end > directOffsets) return deepPage(range, await total(), page)
  const newestKeys = indexedKeys({ ...olderThan(range, page), newestFirst: true, limit: end + 1 })
  const [count, newest] = await Promise.all([total(), newestKeys])
  const isComplete = newest.length < end && before === undefined
  return {
    ...firstKeys(newest.slice(offset), pageSize),
    totalCount: isComplete ? newest.length : Math.max(count, newest.length),
  }
}

/** `count` may lag, so every full page has a next page, which may be empty. */
async function deepPage(range: IndexRange, count: number, page: Page): Promise<KeyPage> {
  const offset = (page.page - 1) * page.pageSize
  const keys = await pageOfKeys(range, count, page)
  const isShort = keys.length > 0 && keys.length < Math.min(page.pageSize, count - offset)
  return {
    keys,
    totalCount: isShort ? offset + keys.length : count,
    next: keys.length === page.pageSize ? keys.at(-1)?.id : undefined,
  }
}

/** Pages the intersection of several ranges, newest first. Merges the ranges without holding them in memory. */
export async function pageOfAll(ranges: readonly IndexRange[], page: Page): Promise<KeyPage> {
  const [range, ...otherRanges] = ranges
  if (range === undefined) return { keys: [], totalCount: 0 }
  if (otherRanges.length === 0) return pageOfRange(range, () => count(range), page)
  const offset = (page.page - 1) * page.pageSize
  const { before = '~', pageSize } = page
  const found: IndexedKey[] = []
  let totalCount = 0
  for await (const key of otherRanges.map(walk).reduce(intersection, walk(range))) {
    if (totalCount >= offset && found.length <= pageSize && key.id < before) found.push(key)
    totalCount++
  }
  return { ...firstKeys(found, pageSize), totalCount }
}

type Keys = AsyncGenerator<IndexedKey, void>

/** Newest first. */
export async function* chunksOf(range: IndexRange, limit: number): AsyncGenerator<IndexedKey[], void> {
  let after: Item | undefined
  do {
    const page = await query({ ...range, newestFirst: true, limit, ...(after && { after }) })
    if (page.items.length > 0) yield page.items.map(keyOf)
    after = page.next
  } while (after !== undefined)
}

/** Newest first. Holds at most one query result in memory. */
async function* walk(range: IndexRange): Keys {
  let after: Item | undefined
  do {
    const page = await query({ ...range, newestFirst: true, ...(after && { after }) })
    yield* page.items.map(keyOf)
    after = page.next
  } while (after !== undefined)
}

/** Both sequences must be in descending order. */
async function* intersection(left: Keys, right: Keys): Keys {
  let [leftResult, rightResult] = await Promise.all([left.next(), right.next()])
  while (!leftResult.done && !rightResult.done) {
    const [newer, older] = [leftResult.value.id >= rightResult.value.id, leftResult.value.id <= rightResult.value.id]
    if (newer && older) yield leftResult.value
    ;[leftResult, rightResult] = await Promise.all([
      newer ? left.next() : leftResult,
      older ? right.next() : rightResult,
    ])
  }
}
