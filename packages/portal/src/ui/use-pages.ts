import { type QueryKey, useQueries, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { pollEvery } from '../api/query.ts'

/** Rows that are fetched at a time: the most that a page of the API holds. */
export const pageRows = 100

/** A page of the API. */
export interface PageOf<Row> {
  items: Row[]
  totalCount: number
}

export interface PageSource<Row> {
  /** Begins with the noun; holds all that the rows depend on, such as the filters. */
  queryKey: QueryKey
  /** Asks for a page, numbered from 1, of `pageRows` rows. The signal ends it when it has been scrolled past. */
  fetchPage: (page: number, signal: AbortSignal) => Promise<PageOf<Row>>
  /** Seconds between two looks at the pages in view; undefined: they are not looked at again by themselves. */
  pollSeconds?: number | undefined
}

/** A page that could not be fetched, or not afresh. */
export interface PageFailure {
  page: number
  error: unknown
  retry: () => void
}

/** How long a page must be in view before it is asked for: what is scrolled past quickly never is. */
const settleMs = 120

/** The rows of a paged list, as far as they were in view. Only pages in view are fetched, and fetched again. */
export function usePages<Row>({ queryKey, fetchPage, pollSeconds }: PageSource<Row>) {
  const client = useQueryClient()
  const [wanted, onRange] = useSettledPages()
  const keyOf = (page: number): QueryKey => [...queryKey, 'page', page]
  const results = useQueries({
    queries: wanted.map((page) => ({
      queryKey: keyOf(page),
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page, signal),
      ...(pollSeconds !== undefined && { refetchInterval: pollEvery(pollSeconds) }),
    })),
  })
  const [total, setTotal] = useState<number>()
  const newest = results.reduce<(typeof results)[number] | undefined>(
    (best, each) => (each.data !== undefined && each.dataUpdatedAt > (best?.dataUpdatedAt ?? -1) ? each : best),
    undefined,
  )
  if (newest?.data !== undefined && newest.data.totalCount !== total) setTotal(newest.data.totalCount)

  const rowAt = (index: number): Row | undefined =>
    client.getQueryData<PageOf<Row>>(keyOf(Math.floor(index / pageRows) + 1))?.items[index % pageRows]
  const failures = results.flatMap(({ error, refetch }, at): PageFailure[] =>
    error === null ? [] : [{ page: wanted[at] ?? 1, error, retry: () => void refetch() }],
  )
  return { total, rowAt, failures, onRange }
}

/** The pages in view, once they have been so for a moment; the first one until then. */
function useSettledPages() {
  const [wanted, setWanted] = useState<readonly number[]>([1])
  const next = useRef({ pages: '', timer: 0 })
  const onRange = useCallback((first: number, last: number) => {
    const pages = pagesOf(first, last)
    if (next.current.pages === pages.join()) return
    clearTimeout(next.current.timer)
    next.current = { pages: pages.join(), timer: window.setTimeout(() => setWanted(pages), settleMs) }
  }, [])
  useEffect(
    () => () => {
      clearTimeout(next.current.timer)
      next.current.pages = ''
    },
    [],
  )
  return [wanted, onRange] as const
}

/** So many rows above and below those in sight are fetched with them. */
const marginRows = 20

function pagesOf(first: number, last: number): number[] {
  const from = Math.floor(Math.max(0, first - marginRows) / pageRows)
  const to = Math.floor((last + marginRows) / pageRows)
  return Array.from({ length: to - from + 1 }, (_, at) => from + at + 1)
}
