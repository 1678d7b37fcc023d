import type { List } from '../print/show.ts'

interface Page<Row> {
  items: Row[]
  totalCount: number
}

type ReadPage<Row> = (paging: { page: number; pageSize: number }) => Promise<Page<Row>>

/** The number of rows to read: at most `limit`, or all. */
export interface Extent {
  limit: number
  all?: true
}

const maxPageSize = 100
const concurrentPages = 4

/** Reads a paged list from its start, with as few requests as possible. */
export async function readList<Row extends object>({ limit, all }: Extent, read: ReadPage<Row>): Promise<List<Row>> {
  const maxRows = all ? Infinity : limit
  const rowsById = new Map<unknown, Row>()
  let totalCount = 0
  for await (const rows of pagesOf(read, maxRows, (count) => (totalCount = count))) {
    // If the list grows while it is read, rows move to the next page and would appear twice.
    for (const row of rows) rowsById.set('id' in row ? row.id : row, row)
  }
  return { items: [...rowsById.values()].slice(0, maxRows), totalCount }
}

/** The pages of a list, up to `most` rows. Several pages are requested at the same time. */
export async function* pagesOf<Row extends object>(
  read: ReadPage<Row>,
  maxRows = Infinity,
  onCount: (totalCount: number) => void = () => {},
): AsyncGenerator<Row[]> {
  const pageSize = Math.min(maxPageSize, maxRows)
  const first = await read({ page: 1, pageSize })
  onCount(first.totalCount)
  yield first.items
  const pages = Math.ceil(Math.min(maxRows, first.totalCount) / pageSize)
  for (let page = 2; page <= pages; page += concurrentPages) {
    const numbers = Array.from({ length: Math.min(concurrentPages, pages - page + 1) }, (_, index) => page + index)
    const nextPages = await Promise.all(numbers.map((number) => read({ page: number, pageSize })))
    yield nextPages.flatMap(({ items }) => items)
  }
}
