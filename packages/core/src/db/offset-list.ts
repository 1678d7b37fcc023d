import type { IdPrefix } from '@platform/contract/common'
import * as z from 'zod'
import { now } from '../clock.ts'
import type { Key } from './keys.ts'
import { firstOf, type Page, upperBoundBelow } from './paging.ts'
import { get, type Item, backOff, queryAll, replace, type WriteItem } from './table.ts'
import { storeContentionError } from '../error.ts'
import { lowestIdAt } from '../id.ts'
import { seekOffset, emptyOffsets, type OffsetIndex, withoutRecord, withRecord } from './offset-index.ts'

/**
 * Lists with a constant cost per page. Records share a partition, in order of their ids; a head item holds the total
 * and the offset index. Inserts and removals replace the head in the same transaction. Pages may lag behind writes,
 * usually by less than a second.
 */

export interface OffsetList {
  head: Key
  pk: string
  prefix: IdPrefix
}

export const ListHead = z.object({
  total: z.number().default(0),
  ranks: z.custom<OffsetIndex>((value) => value instanceof Uint8Array).default(emptyOffsets),
  lastTimeMs: z.number().default(0),
  version: z.number().default(0),
})
export type ListHead = z.infer<typeof ListHead>

export const parseHead = (item: Item | undefined): ListHead => ListHead.parse(item ?? {})

export const readHead = async ({ head }: OffsetList): Promise<ListHead> => parseHead(await get(head))

/** Returns a creation time after that of all earlier records, even if the clocks of processes differ. */
export const nextSortTimeMs = ({ lastTimeMs }: ListHead): number => Math.max(now(), lastTimeMs + 1)

/** The write fails if the list has changed since its head was read. */
export const insertWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { total: head.total + 1, ranks: withRecord(head.ranks, timeMs), lastTimeMs: timeMs })

/** The write fails if the list has changed since its head was read. */
export const removeWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { ...head, total: head.total - 1, ranks: withoutRecord(head.ranks, timeMs) })

const replaceHead = (list: OffsetList, { version }: ListHead, nextHead: Omit<ListHead, 'version'>): WriteItem =>
  replace(
    list.head,
    { ...nextHead, version: version + 1 },
    version === 0 ? { pk: { absent: true } } : { version: { is: version } },
  )

export const initialiseWrite = ({ head }: OffsetList, timeMs: number): WriteItem =>
  replace(head, { total: 1, ranks: withRecord(emptyOffsets(), timeMs), lastTimeMs: timeMs, version: 1 })

const maxAttempts = 20

/** Calls `attempt` up to 20 times, until it returns a result. After a conflict, `attempt` must return undefined. */
export async function retryOnConflict<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  for (let count = 0; count < maxAttempts; count++) {
    if (count > 0) await backOff(count)
    const result = await attempt()
    if (result !== undefined) return result
  }
  throw storeContentionError()
}

export async function readPage(list: OffsetList, page: Page) {
  const { total, ranks } = parseHead(await get(list.head, { mayBeStale: true }))
  const records = await recordsFrom(list, ranks, page)
  const offset = page.before === undefined && records.length > 0 ? (page.page - 1) * page.pageSize : 0
  // The head may be older than the records.
  const totalCount = Math.max(total, offset + records.length)
  return { ...firstOf(records, page.pageSize, ({ sk }) => String(sk)), totalCount }
}

/** Reads one record more than the page has, to see whether others follow. */
async function recordsFrom(list: OffsetList, index: OffsetIndex, { page, pageSize, before }: Page): Promise<Item[]> {
  const size = pageSize + 1
  if (before !== undefined) return readNewestRecords(list, size, upperBoundBelow(before))
  const position = seekOffset(index, (page - 1) * pageSize)
  if (position === undefined) return []
  const { skippedCount, beforeMs } = position
  const to = beforeMs === undefined ? undefined : lowestIdAt(list.prefix, beforeMs)
  return (await readNewestRecords(list, skippedCount + size, to)).slice(skippedCount)
}

export const readNewestRecords = ({ pk }: OffsetList, limit: number, to?: string): Promise<Item[]> =>
  queryAll({ pk, ...(to !== undefined && { to }), isNewestFirst: true, mayBeStale: true }, limit)
