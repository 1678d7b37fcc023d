import type { List } from '../print/show.ts'

interface Page<Row> {
  items: Row[]
  totalCount: number
  nextCursor?: string
}

export interface Paging {
  pageSize: number
  cursor?: string
}

type ReadPage<Row> = (paging: Paging) => Promise<Page<Row>>

/** The number of rows to read: at most `limit`, or all. */
export interface Extent {
  limit: number
  all?: true
}

/** The maximum page size of the API. */
export const maxPageSize = 100

/** Reads a paged list from its start, with as few requests as possible. */
export async function readList<Row extends object>({ limit, all }: Extent, read: ReadPage<Row>): Promise<List<Row>> {
  const maxRows = all ? Infinity : limit
  const items: Row[] = []
  let totalCount = 0
  for await (const rows of pagesOf(read, maxRows, (count) => (totalCount = count))) items.push(...rows)
  return { items: items.slice(0, maxRows), totalCount }
}

/** Reads pages of a list until they contain at least `maxRows` rows or the list ends. */
export async function* pagesOf<Row extends object>(
  read: ReadPage<Row>,
  maxRows = Infinity,
  onCount: (totalCount: number) => void = () => {},
): AsyncGenerator<Row[]> {
  const pageSize = Math.min(maxPageSize, maxRows)
  let cursor: string | undefined
  let count = 0
  do {
    const page = await read({ pageSize, ...(cursor !== undefined && { cursor }) })
    onCount(page.totalCount)
    yield page.items
    count += page.items.length
    cursor = page.nextCursor
  } while (cursor !== undefined && count < maxRows)
}
