import { hashKey, type QueryKey, useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useIsOffline } from '../api/account.ts'
import { Button } from './button.tsx'
import { type CursorPage, cursorQuery } from './cursor-query.ts'
import { ErrorNote } from './error-note.tsx'
import { Loading } from './state.tsx'
import { marginRows } from './use-pages.ts'
import styles from './virtual-table.module.css'
import { VirtualTable, type VirtualVariant } from './virtual-table.tsx'

interface CursorTableProps<Row> extends VirtualVariant<Row> {
  queryKey: QueryKey
  fetchPage: (cursor: string | undefined, signal: AbortSignal) => Promise<CursorPage<Row>>
  summary: (total: number) => string
  empty: ReactNode
}

/** A list that is read by cursor, page after page, because the API may not know the number of all rows. */
export const CursorTable = <Row,>(props: CursorTableProps<Row>) => <Rows key={hashKey(props.queryKey)} {...props} />

function Rows<Row>({ queryKey, fetchPage, summary, empty, ...table }: CursorTableProps<Row>) {
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = useInfiniteQuery(
    cursorQuery(queryKey, fetchPage),
  )
  const isOffline = useIsOffline()
  const [firstPage] = data?.pages ?? []
  if (firstPage === undefined)
    return error === null || isOffline ? (
      <Loading what={table.label.toLowerCase()} />
    ) : (
      <ErrorNote error={error} onRetry={() => void refetch()} />
    )
  const rows = data?.pages.flatMap(({ items }) => items) ?? []
  if (rows.length === 0 && !hasNextPage) return empty
  const total = hasNextPage ? Math.max(firstPage.totalCount, rows.length) : rows.length
  const isExact = !hasNextPage || firstPage.searchedAll !== false
  const fetchMore = () => void (hasNextPage && !isFetching && error === null && fetchNextPage())
  return (
    <div className={styles['paged']}>
      <p role="status" className={styles['count']}>
        {isExact ? summary(total) : `More than ${summary(total)}`}
      </p>
      <VirtualTable
        {...table}
        count={rows.length}
        rowAt={(index) => rows[index]}
        onRange={(_, lastIndex) => lastIndex >= rows.length - marginRows && fetchMore()}
      />
      {error !== null && !isOffline && <ErrorNote error={error} onRetry={() => void fetchNextPage()} />}
      {hasNextPage && (
        <Button className={styles['more']} isBusy={isFetching} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </div>
  )
}
