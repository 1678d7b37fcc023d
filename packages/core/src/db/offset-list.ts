import { type IdPrefix } from '@platform/contract/common'
import * as z from 'zod'
import { now } from '../clock.ts'
import { type Key } from './keys.ts'
import { get, type Item, backOff, queryAll, replace, type WriteItem } from './table.ts'
import { storeContention } from '../error.ts'
import { idsBefore } from '../id.ts'
import { seekOffset, emptyOffsets, type OffsetIndex, withoutRecord, withRecord } from './offset-index.ts'

/**
 * Lists whose pages all cost the same, however deep (D12). The rows of a list stand in one partition by id, newest last;
 * beside them one head item says how many there are and where each bucket of them begins. Whoever enters or removes a row
 * replaces the head in the same transaction. Pages may lag behind writes by the store's replication, below a second.
 */

/** Where a list stands, and the prefix of the ids in it. */
export interface OffsetList {
  head: Key
  pk: string
  prefix: IdPrefix
}

/** A list's head: how many rows there are, and where each bucket of them begins. */
export const ListHead = z.object({
  total: z.number().default(0),
  ranks: z.custom<OffsetIndex>((value) => value instanceof Uint8Array).default(emptyOffsets),
  lastTimeMs: z.number().default(0),
  version: z.number().default(0),
})
export type ListHead = z.infer<typeof ListHead>

/** The head of its stored item; that of an empty list where there is none. */
export const parseHead = (item: Item | undefined): ListHead => ListHead.parse(item ?? {})

/** A list's head as it stands now. One call. */
export const readHead = async ({ head }: OffsetList): Promise<ListHead> => parseHead(await get(head))

/** The creation time of the next row: times within one list are distinct and ascend, whatever the clocks of processes say. */
export const nextSortTimeMs = ({ lastTimeMs }: ListHead): number => Math.max(now(), lastTimeMs + 1)

/** The step that enters a row created at `timeMs`; refused where the list has changed since its head was read. */
export const insertWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { total: head.total + 1, ranks: withRecord(head.ranks, timeMs), lastTimeMs: timeMs })

/** The step that takes out the row created at `timeMs`; refused where the list has changed since its head was read. */
export const removeWrite = (list: OffsetList, head: ListHead, timeMs: number): WriteItem =>
  replaceHead(list, head, { ...head, total: head.total - 1, ranks: withoutRecord(head.ranks, timeMs) })

const replaceHead = (list: OffsetList, { version }: ListHead, next: Omit<ListHead, 'version'>): WriteItem =>
  replace(
    list.head,
    { ...next, version: version + 1 },
    version === 0 ? { pk: { absent: true } } : { version: { is: version } },
  )

/** The step that starts a list with its first row, whatever was there before. */
export const initialiseWrite = ({ head }: OffsetList, timeMs: number): WriteItem =>
  replace(head, { total: 1, ranks: withRecord(emptyOffsets(), timeMs), lastTimeMs: timeMs, version: 1 })

/** Changes of one list are made one after another; this many may meet. */
const turns = 20

/** Makes a change that was refused because others changed the same once more, until it answers something. */
export async function retryOnConflict<Result>(attempt: () => Promise<Result | undefined>): Promise<Result> {
  for (let turn = 0; turn < turns; turn++) {
    if (turn > 0) await backOff(turn)
    const result = await attempt()
    if (result !== undefined) return result
  }
  throw storeContention()
}

/** One page of a list, newest first, and how many rows there are. Two calls. */
export async function readPage(list: OffsetList, { page, pageSize }: { page: number; pageSize: number }) {
  const { total, ranks } = parseHead(await get(list.head, { stale: true }))
  return { items: await recordsFrom(list, ranks, (page - 1) * pageSize, pageSize), totalCount: total, page, pageSize }
}

/** The rows of a list behind the `offset` newest ones, newest first. One call. */
export async function recordsFrom(list: OffsetList, ranks: OffsetIndex, offset: number, size: number): Promise<Item[]> {
  const place = seekOffset(ranks, offset)
  if (place === undefined) return []
  const rows = await newestRecords(list, place.skip + size, place.beforeMs)
  return rows.slice(place.skip)
}

/** The newest rows of a list, or the newest of those created before a time. One call per 1 MB. */
export async function newestRecords({ pk, prefix }: OffsetList, limit: number, beforeMs?: number): Promise<Item[]> {
  const before = beforeMs === undefined ? {} : { to: idsBefore(prefix, beforeMs) }
  return queryAll({ pk, ...before, newestFirst: true, stale: true }, limit)
}
