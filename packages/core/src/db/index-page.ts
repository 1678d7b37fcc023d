import { type IndexName, type Key } from './keys.ts'
import { count, type Item, query, queryAll } from './table.ts'

/**
 * Lists by index: walks keys only. Indexes lag behind writes by less than a second, and one call reads about 5,000 keys
 * (1 MB).
 */

/** A partition of an index, optionally between two ids (inclusive). `limit` ends the walk early. */
export interface IndexRange {
  index: Exclude<IndexName, 'due'>
  pk: string
  from?: string
  to?: string
  newestFirst?: boolean
  limit?: number
}

/** An index entry: the item's key and the id that sorts it. */
export interface IndexedKey extends Key {
  id: string
}

const keyOf = ({ pk, sk, id }: Item): IndexedKey => ({ pk: String(pk), sk: String(sk), id: String(id) })

/** The keys of a range, by id. One call, and one per further 5,000 keys. */
export const indexedKeys = async ({ limit, ...range }: IndexRange): Promise<IndexedKey[]> =>
  (await queryAll(range, limit)).map(keyOf)

/** A page of a request, from 1. */
export interface Page {
  page: number
  pageSize: number
}

/** The keys of one page, newest first, of a range with `count` keys. Walks from the nearer end. */
export async function pageOfKeys(range: IndexRange, count: number, { page, pageSize }: Page): Promise<IndexedKey[]> {
  const offset = (page - 1) * pageSize
  if (offset >= count) return []
  const end = Math.min(offset + pageSize, count)
  const newestFirst = offset <= count - end
  const limit = newestFirst ? end : count - offset
  const found = (await indexedKeys({ ...range, newestFirst, limit })).slice(limit - (end - offset))
  return newestFirst ? found : found.toReversed()
}

/** The keys of a page, and the total number. */
export interface FoundKeys {
  found: IndexedKey[]
  totalCount: number
}

/** The newest keys are read directly, without an exact total. One call. */
const nearest = 1000

/** The keys of one page, newest first. A page that does not fit the total corrects it. */
export async function pageOfRange(range: IndexRange, total: () => Promise<number>, page: Page): Promise<FoundKeys> {
  const offset = (page.page - 1) * page.pageSize
  const end = offset + page.pageSize
  if (end > nearest) {
    const count = await total()
    const found = await pageOfKeys(range, count, page)
    const isShort = found.length > 0 && found.length < Math.min(end, count) - offset
    return { found, totalCount: isShort ? offset + found.length : count }
  }
  const [count, walked] = await Promise.all([total(), indexedKeys({ ...range, newestFirst: true, limit: end })])
  return { found: walked.slice(offset), totalCount: walked.length < end ? walked.length : Math.max(count, end) }
}

/**
 * The keys of one page of the intersection of ranges, newest first. A single range is counted, one call per 5,000 keys;
 * several are merged without holding them in memory.
 */
export async function pageOfAll(ranges: readonly IndexRange[], page: Page): Promise<FoundKeys> {
  const [range, ...others] = ranges
  if (range === undefined) return { found: [], totalCount: 0 }
  if (others.length === 0) return pageOfRange(range, () => count(range), page)
  const offset = (page.page - 1) * page.pageSize
  const found: IndexedKey[] = []
  let totalCount = 0
  for await (const key of others.map(walk).reduce(common, walk(range))) {
    if (totalCount >= offset && found.length < page.pageSize) found.push(key)
    totalCount++
  }
  return { found, totalCount }
}

type Keys = AsyncGenerator<IndexedKey, void>

/** The keys of a range, newest first, one call's worth in memory. */
async function* walk(range: IndexRange): Keys {
  let after: Item | undefined
  do {
    const part = await query({ ...range, newestFirst: true, ...(after && { after }) })
    yield* part.items.map(keyOf)
    after = part.next
  } while (after !== undefined)
}

/** The keys that both walks contain. */
async function* common(left: Keys, right: Keys): Keys {
  let [a, b] = await Promise.all([left.next(), right.next()])
  while (!a.done && !b.done) {
    const [newer, older] = [a.value.id >= b.value.id, a.value.id <= b.value.id]
    if (newer && older) yield a.value
    ;[a, b] = await Promise.all([newer ? left.next() : a, older ? right.next() : b])
  }
}
