import type { AuditEntryRequest } from '@platform/contract/audit'
import { readAuditHead } from './projection.ts'
import { parseEntry } from './entry.ts'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, query } from '../db/table.ts'
import { lowestIdAt, timeMsOf } from '../id.ts'
import { type IndexRange, pageOfAll } from '../db/index-page.ts'
import { type Page, paged, type PageQuery, type Positioned } from '../db/paging.ts'

export { verify } from './verify.ts'
export { exportPage } from './export.ts'
export { checkpoint } from './checkpoint.ts'

/** The entry joins the hash chain when a projection processes the outbox record. */
export async function appendEntry(caller: Caller, { action, resource, detail }: AuditEntryRequest): Promise<void> {
  await commit(caller, { writes: [], response: null, audit: { action, resource, detail, isExtra: true } })
}

/** Times are milliseconds; `to` is exclusive. */
export interface AuditQuery extends PageQuery {
  actor?: string | undefined
  action?: string | undefined
  resource?: string | undefined
  from?: number | undefined
  to?: number | undefined
}

type AuditFilter = Omit<AuditQuery, keyof PageQuery>

export const list = (caller: Caller, { page, pageSize, cursor, ...filter }: AuditQuery) =>
  paged(['audit', caller.organisationId, filter], { page, pageSize, cursor }, async (requestedPage) => {
    const isFiltered = filter.actor !== undefined || filter.action !== undefined || filter.resource !== undefined
    const { items, ...rest } = await (isFiltered ? pageOfFilter : pageOfChain)(caller, filter, requestedPage)
    return { items: items.map(parseEntry), ...rest }
  })

interface EntryPage extends Positioned {
  items: Item[]
  totalCount: number
}

async function pageOfFilter(
  { organisationId }: Caller,
  { from, to, ...values }: AuditFilter,
  page: Page,
): Promise<EntryPage> {
  const bounds = {
    ...(from !== undefined && { from: lowestIdAt('aud', from) }),
    ...(to !== undefined && { to: lowestIdAt('aud', to) }),
  }
  const ranges = filterIndexes.flatMap(([filter, index]): IndexRange[] => {
    const value = values[filter]
    return value === undefined ? [] : [{ index, pk: keys.auditPartition(organisationId, filter, value), ...bounds }]
  })
  const { keys: entryKeys, ...rest } = await pageOfAll(ranges, page)
  const items = await getConsistent(entryKeys)
  return { items: items.filter((item) => item !== undefined), ...rest }
}

const filterIndexes = [
  ['actor', 'gsi1'],
  ['action', 'gsi2'],
  ['resource', 'gsi3'],
] as const

/** Entry numbers have no gaps, so a page is a range of numbers. */
async function pageOfChain(
  { organisationId }: Caller,
  { from, to }: AuditFilter,
  { page, pageSize, before: position }: Page,
): Promise<EntryPage> {
  const { seq } = await readAuditHead(organisationId)
  const [earlierCount, lastSeq] = await Promise.all([
    from === undefined ? 0 : countEntriesBefore(organisationId, seq, from),
    to === undefined ? seq : countEntriesBefore(organisationId, seq, to),
  ])
  const totalCount = Math.max(0, lastSeq - earlierCount)
  const newestSeq = position === undefined ? lastSeq - (page - 1) * pageSize : Math.min(lastSeq, Number(position) - 1)
  if (!(newestSeq > earlierCount)) return { items: [], totalCount }
  const oldestSeq = Math.max(earlierCount + 1, newestSeq - pageSize + 1)
  const firstKey = keys.auditEntry(organisationId, oldestSeq)
  const lastKey = keys.auditEntry(organisationId, newestSeq)
  const { items } = await query({ pk: firstKey.pk, from: firstKey.sk, to: lastKey.sk, isNewestFirst: true })
  return { items, totalCount, next: oldestSeq > earlierCount + 1 ? String(oldestSeq) : undefined }
}

const probesPerCall = 100

/** Searches the chain, whose times ascend. Each iteration narrows the range to about a hundredth. */
async function countEntriesBefore(organisationId: string, entryCount: number, timeMs: number): Promise<number> {
  let [low, end] = [0, entryCount]
  while (low < end) {
    const step = Math.ceil((end - low) / probesPerCall)
    const numbers = Array.from({ length: Math.floor((end - low) / step) }, (_, index) => low + (index + 1) * step)
    const items = await getConsistent(numbers.map((seq) => keys.auditEntry(organisationId, seq)))
    const olderCount = items.filter((item) => timeMsOf(String(item?.['id'])) < timeMs).length
    ;[low, end] = [low + olderCount * step, Math.min(end, low + (olderCount + 1) * step - 1)]
  }
  return low
}
