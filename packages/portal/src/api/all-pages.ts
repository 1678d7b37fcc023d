interface ListPage<Row> {
  items: Row[]
  nextCursor?: string | undefined
}

interface Paging {
  pageSize: number
  cursor?: string
}

/** The maximum page size of the API. */
export const maxPageSize = 100

/** Reads all pages of a list, or the first `maxPages`. */
export async function allPages<Row>(
  read: (paging: Paging) => Promise<ListPage<Row>>,
  maxPages = Infinity,
): Promise<Row[]> {
  const rows: Row[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const { items, nextCursor } = await read({ pageSize: maxPageSize, ...(cursor !== undefined && { cursor }) })
    rows.push(...items)
    cursor = nextCursor
    if (cursor === undefined) break
  }
  return rows
}
