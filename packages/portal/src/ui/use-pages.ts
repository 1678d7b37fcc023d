import { type QueryKey, useQueries, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { pollEvery } from '../api/query.ts'

/** Rows per request, which is the maximum of the API. */
export const rowsPerPage = 100

export interface PageOf<Row> {
  items: Row[]
  totalCount: number
  /** False if a search left out a part of the list. */
  searchedAll?: boolean
}

export interface PageSource<Row> {
  /** Contains all values that the rows depend on. */
  queryKey: QueryKey
  /**
   * Fetches a page of `rowsPerPage` rows. Pages are numbered from 1. The signal aborts when the page scrolls out of
   * view.
   */
  fetchPage: (page: number, signal: AbortSignal) => Promise<PageOf<Row>>
  /** Polling interval of the visible pages; undefined to disable polling. */
  pollSeconds?: number | undefined
}

/** A page that could not be fetched or refreshed. */
export interface PageFailure {
  page: number
  error: unknown
  retry: () => void
}

// Pages that scroll past faster than this are not requested.
const pauseMs = 120

/** Reads the rows of a paged list. Only pages in or near the window are fetched and polled. */
export function usePages<Row>({ queryKey, fetchPage, pollSeconds }: PageSource<Row>) {
  const client = useQueryClient()
  const [pageNumbers, onRange] = useSettledPages()
  const keyOf = (page: number): QueryKey => [...queryKey, 'page', page]
  const results = useQueries({
    queries: pageNumbers.map((page) => ({
      queryKey: keyOf(page),
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page, signal),
      ...(pollSeconds !== undefined && { refetchInterval: pollEvery(pollSeconds) }),
    })),
  })
  const [total, setTotal] = useState<number>()
  const newestResult = results.reduce<(typeof results)[number] | undefined>(
    (latestResult, each) =>
      each.data !== undefined && each.dataUpdatedAt > (latestResult?.dataUpdatedAt ?? -1) ? each : latestResult,
    undefined,
  )
  if (newestResult?.data !== undefined && newestResult.data.totalCount !== total) setTotal(newestResult.data.totalCount)

  const rowAt = (index: number): Row | undefined =>
    client.getQueryData<PageOf<Row>>(keyOf(Math.floor(index / rowsPerPage) + 1))?.items[index % rowsPerPage]
  const failures = results.flatMap(({ error, refetch }, index): PageFailure[] =>
    error === null ? [] : [{ page: pageNumbers[index] ?? 1, error, retry: () => void refetch() }],
  )
  return { total, isPartial: newestResult?.data?.searchedAll === false, rowAt, failures, onRange }
}

// Scrolling changes the visible pages quickly, so a change takes effect after a pause.
function useSettledPages() {
  const [pageNumbers, setPageNumbers] = useState<readonly number[]>([1])
  const next = useRef({ pages: '', timer: 0 })
  const onRange = useCallback((firstIndex: number, lastIndex: number) => {
    const pages = pagesOf(firstIndex, lastIndex)
    if (next.current.pages === pages.join()) return
    clearTimeout(next.current.timer)
    next.current = { pages: pages.join(), timer: window.setTimeout(() => setPageNumbers(pages), pauseMs) }
  }, [])
  useEffect(
    () => () => {
      clearTimeout(next.current.timer)
      next.current.pages = ''
    },
    [],
  )
  return [pageNumbers, onRange] as const
}

/** Rows outside of the window that are fetched in advance. */
export const marginRows = 20

function pagesOf(firstIndex: number, lastIndex: number): number[] {
  const firstPage = Math.floor(Math.max(0, firstIndex - marginRows) / rowsPerPage)
  const lastPage = Math.floor((lastIndex + marginRows) / rowsPerPage)
  return Array.from({ length: lastPage - firstPage + 1 }, (_, index) => firstPage + index + 1)
}
