import { type IndexName, type Key } from './db/keys.ts'
import { type Item, query } from './db/table.ts'

/**
 * Lists by index: a walk over keys only, which lists share. Indexes lag behind writes, below a second, and hold about
 * 5,000 keys in the 1 MB that one call reads.
 */

/** One partition of an index, or the part of it between two ids (inclusive). `limit` ends the walk early. */
export interface IndexRange {
  index: Exclude<IndexName, 'due'>
  pk: string
  from?: string
  to?: string
  newestFirst?: boolean
  limit?: number
}

/** What an index tells of an item: its key, and the id that the index sorts by. */
export interface IndexedKey extends Key {
  id: string
}

/** The keys of a range, by id. One call, and another one for every further 5,000 keys. */
export async function indexedKeys({ limit = Infinity, ...range }: IndexRange): Promise<IndexedKey[]> {
  const found: IndexedKey[] = []
  let after: Item | undefined
  do {
    const left = limit === Infinity ? {} : { limit: limit - found.length }
    const part = await query({ ...range, ...left, ...(after && { after }) })
    found.push(...part.items.map(({ pk, sk, id }) => ({ pk: String(pk), sk: String(sk), id: String(id) })))
    after = part.next
  } while (after !== undefined && found.length < limit)
  return found
}

/** A page as callers ask for it, from 1. */
export interface Page {
  page: number
  pageSize: number
}

/** The keys of one page, newest first, of a range that holds `count` of them. Walks from the nearer end. */
export async function pageOfKeys(range: IndexRange, count: number, { page, pageSize }: Page): Promise<IndexedKey[]> {
  const offset = (page - 1) * pageSize
  if (offset >= count) return []
  const end = Math.min(offset + pageSize, count)
  const newestFirst = offset <= count - end
  const limit = newestFirst ? end : count - offset
  const found = (await indexedKeys({ ...range, newestFirst, limit })).slice(limit - (end - offset))
  return newestFirst ? found : found.toReversed()
}

/** The keys that all these ranges hold, newest first. Each is walked whole, all at once. */
export async function commonKeys(ranges: readonly IndexRange[]): Promise<IndexedKey[]> {
  const [first = [], ...others] = await Promise.all(ranges.map((range) => indexedKeys({ ...range, newestFirst: true })))
  const sets = others.map((found) => new Set(found.map(({ id }) => id)))
  return first.filter(({ id }) => sets.every((set) => set.has(id)))
}
