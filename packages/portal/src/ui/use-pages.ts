import { type QueryKey, useQueries, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { pollEvery } from '../api/query.ts'

/** Rows per request, which is the maximum of the API. */
export const pageSize = 100

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
   * Fetches a page of `pageSize` rows. Pages are numbered from 1. The signal aborts when the page scrolls out of view.
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
  const newest = results.reduce<(typeof results)[number] | undefined>(
    (latest, each) => (each.data !== undefined && each.dataUpdatedAt > (latest?.dataUpdatedAt ?? -1) ? each : latest),
    undefined,
  )
  if (newest?.data !== undefined && newest.data.totalCount !== total) setTotal(newest.data.totalCount)

  const rowAt = (index: number): Row | undefined =>
    client.getQueryData<PageOf<Row>>(keyOf(Math.floor(index / pageSize) + 1))?.items[index % pageSize]
  const failures = results.flatMap(({ error, refetch }, index): PageFailure[] =>
    error === null ? [] : [{ page: pageNumbers[index] ?? 1, error, retry: () => void refetch() }],
  )
  return { total, isPartial: newest?.data?.searchedAll === false, rowAt, failures, onRange }
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
  const firstPage = Math.floor(Math.max(0, firstIndex - marginRows) / pageSize)
  const lastPage = Math.floor((lastIndex + marginRows) / pageSize)
  return Array.from({ length: lastPage - firstPage + 1 }, (_, index) => firstPage + index + 1)
}
