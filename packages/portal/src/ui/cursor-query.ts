import { type InfiniteData, infiniteQueryOptions, type QueryKey } from '@tanstack/react-query'

export interface CursorPage<Row> {
  items: Row[]
  totalCount: number
  nextCursor?: string
  /** False if the total does not include all rows. */
  searchedAll?: boolean
}

/** Returns the query of a list that is read by cursor, page after page. */
export const cursorQuery = <Row>(
  queryKey: QueryKey,
  fetchPage: (cursor: string | undefined, signal: AbortSignal) => Promise<CursorPage<Row>>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => fetchPage(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })

/** Returns the rows of the loaded pages, with the total of the last page. */
export const loadedRows = <Row>({ pages }: InfiniteData<CursorPage<Row>>) => ({
  items: pages.flatMap(({ items }) => items),
  totalCount: pages.at(-1)?.totalCount ?? 0,
})
