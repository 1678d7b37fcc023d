import type { List } from '../print/show.ts'

/** A page of a list, as the platform answers it. */
interface Page<Row> {
  items: Row[]
  totalCount: number
}

/** Reads one page. */
type ReadPage<Row> = (paging: { page: number; pageSize: number }) => Promise<Page<Row>>

/** How much of a list is asked for: `limit` rows unless `all`. */
export interface Extent {
  limit: number
  all?: true
}

const largestPage = 100
const pagesAtOnce = 4

/** The rows of a paged list from its beginning, from as few pages as hold them. */
export async function readList<Row extends object>({ limit, all }: Extent, read: ReadPage<Row>): Promise<List<Row>> {
  const most = all ? Infinity : limit
  const seen = new Map<unknown, Row>()
  let totalCount = 0
  for await (const rows of pagesOf(read, most, (count) => (totalCount = count))) {
    // A list that grows while it is read moves rows to the next page: they come twice.
    for (const row of rows) seen.set('id' in row ? row.id : row, row)
  }
  return { items: [...seen.values()].slice(0, most), totalCount }
}

/** The pages of a list, the next ones already on their way; no more of them than hold `most` rows. */
export async function* pagesOf<Row extends object>(
  read: ReadPage<Row>,
  most = Infinity,
  onCount: (totalCount: number) => void = () => {},
): AsyncGenerator<Row[]> {
  const pageSize = Math.min(largestPage, most)
  const first = await read({ page: 1, pageSize })
  onCount(first.totalCount)
  yield first.items
  const pages = Math.ceil(Math.min(most, first.totalCount) / pageSize)
  for (let page = 2; page <= pages; page += pagesAtOnce) {
    const numbers = Array.from({ length: Math.min(pagesAtOnce, pages - page + 1) }, (_, index) => page + index)
    const several = await Promise.all(numbers.map((number) => read({ page: number, pageSize })))
    yield several.flatMap(({ items }) => items)
  }
}
