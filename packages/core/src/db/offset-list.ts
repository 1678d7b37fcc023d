import { type IdPrefix } from '@platform/contract/common'
import * as z from 'zod'
import { now } from '../clock.ts'
import { type Key } from './keys.ts'
import { get, type Item, backOff, queryAll, replace, type WriteItem } from './table.ts'
import { storeContention } from '../error.ts'
import { idsBefore } from '../id.ts'
import { seekOffset, emptyOffsets, type OffsetIndex, withoutRecord, withRecord } from './offset-index.ts'

/**
 * Lists with constant cost per page. Records are in one partition by id, newest last; a head item contains the total
 * and the offset index. Inserts and removals replace the head in the same transaction. Pages may lag behind
 * writes by replication, less than a second.
 */

/** The keys of a list, and the prefix of its ids. */
export interface OffsetList {
  head: Key
  pk: string
  prefix: IdPrefix
}

/** The head of a list: the total and the offset index. */
export const ListHead = z.object({
  total: z.number().default(0),
  ranks: z.custom<OffsetIndex>((value) => value instanceof Uint8Array).default(emptyOffsets),
  lastTimeMs: z.number().default(0),
  version: z.number().default(0),
})
export type ListHead = z.infer<typeof ListHead>

/** Parses a head; undefined is an empty list. */
export const parseHead = (item: Item | undefined): ListHead => ListHead.parse(item ?? {})

/** The current head of a list. One call. */
export const readHead = async ({ head }: OffsetList): Promise<ListHead> => parseHead(await get(head))

/** The creation time of the next record: distinct and ascending within a list, despite clock differences. */
export const nextSortTimeMs = ({ lastTimeMs }: ListHead): number => Math.max(now(), lastTimeMs + 1)

/** Inserts a record created at `timeMs`. Fails if the list has changed since its head was read. */
export const insertWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { total: head.total + 1, ranks: withRecord(head.ranks, timeMs), lastTimeMs: timeMs })

/** Removes the record created at `timeMs`. Fails if the list has changed since its head was read. */
export const removeWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { ...head, total: head.total - 1, ranks: withoutRecord(head.ranks, timeMs) })

const replaceHead = (list: OffsetList, { version }: ListHead, next: Omit<ListHead, 'version'>): WriteItem =>
  replace(
    list.head,
    { ...next, version: version + 1 },
    version === 0 ? { pk: { absent: true } } : { version: { is: version } },
  )

/** Starts a list with its first record, replacing any head. */
export const initialiseWrite = ({ head }: OffsetList, timeMs: number): WriteItem =>
  replace(head, { total: 1, ranks: withRecord(emptyOffsets(), timeMs), lastTimeMs: timeMs, version: 1 })

const maxAttempts = 20

/** Retries a change that failed because of a concurrent one, until it returns a result. */
export async function retryOnConflict<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  for (let count = 0; count < maxAttempts; count++) {
    if (count > 0) await backOff(count)
    const result = await attempt()
    if (result !== undefined) return result
  }
  throw storeContention()
}

/** One page of a list, newest first, and the total. Two calls. */
export async function readPage(list: OffsetList, { page, pageSize }: { page: number; pageSize: number }) {
  const { total, ranks } = parseHead(await get(list.head, { stale: true }))
  return { items: await recordsFrom(list, ranks, (page - 1) * pageSize, pageSize), totalCount: total, page, pageSize }
}

/** The records after the `offset` newest ones, newest first. One call. */
export async function recordsFrom(list: OffsetList, index: OffsetIndex, offset: number, size: number): Promise<Item[]> {
  const position = seekOffset(index, offset)
  if (position === undefined) return []
  const records = await newestRecords(list, position.skip + size, position.beforeMs)
  return records.slice(position.skip)
}

/** The newest records, optionally before a time. One call per 1 MB. */
export async function newestRecords({ pk, prefix }: OffsetList, limit: number, beforeMs?: number): Promise<Item[]> {
  const before = beforeMs === undefined ? {} : { to: idsBefore(prefix, beforeMs) }
  return queryAll({ pk, ...before, newestFirst: true, stale: true }, limit)
}
