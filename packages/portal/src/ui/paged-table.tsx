import { hashKey } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useIsOffline } from '../api/account.ts'
import { ErrorNote } from './error-note.tsx'
import { foldedRows } from './folded-rows.ts'
import { Loading } from './state.tsx'
import { type PageSource, usePages } from './use-pages.ts'
import { VirtualTable, type VirtualVariant } from './virtual-table.tsx'
import styles from './virtual-table.module.css'

interface PagedTableProps<Row> extends PageSource<Row>, VirtualVariant<Row> {
  /** Formats the total above the list, such as `(total) => `${total} jobs``. */
  summary?: (total: number) => ReactNode
  /** Controls above the list. */
  toolbar?: (total: number) => ReactNode
  empty: ReactNode
  /** Whether a row is folded into the newer row before it until the user expands the group. */
  isFolded?: (row: Row, newer: Row) => boolean
}

/**
 * A virtual list of an API resource, which fetches pages on demand. Another `queryKey` starts another list at its top.
 */
export const PagedTable = <Row,>(props: PagedTableProps<Row>) => <Rows key={hashKey(props.queryKey)} {...props} />

function Rows<Row>({
  queryKey,
  fetchPage,
  pollSeconds,
  summary,
  toolbar,
  empty,
  isFolded,
  ...table
}: PagedTableProps<Row>) {
  const { total, isPartial, rowAt, failures, onRange } = usePages({ queryKey, fetchPage, pollSeconds })
  const [expandedKeys, setExpandedKeys] = useState<ReadonlySet<string>>(new Set())
  const isOffline = useIsOffline()
  const notes = (isOffline ? [] : failures).map(({ page, error, retry }) => (
    <ErrorNote key={page} error={error} onRetry={retry} />
  ))
  if (total === undefined) return notes.length > 0 ? notes : <Loading what={table.label.toLowerCase()} />
  const note = isPartial && (
    <p className={styles['count']}>Only the newest were searched, so older ones may match too. Use fewer filters.</p>
  )
  if (total === 0)
    return (
      <>
        {note}
        {empty}
      </>
    )
  const foldedTable = foldedRows({ total, rowAt, isFolded, rowKey: table.rowKey, expandedKeys })
  const toggle = (key: string) =>
    setExpandedKeys((keys) => new Set(keys.has(key) ? [...keys].filter((each) => each !== key) : [...keys, key]))
  return (
    <div className={styles['paged']}>
      {summary && (
        <p role="status" className={styles['count']}>
          {summary(total)}
        </p>
      )}
      {note}
      {toolbar?.(total)}
      <VirtualTable
        {...table}
        count={total - foldedTable.hiddenCount}
        rowAt={(index) => rowAt(foldedTable.indexOf(index))}
        foldAt={(index) => foldedTable.foldAt(index, toggle)}
        onRange={(firstIndex, lastIndex) => onRange(foldedTable.indexOf(firstIndex), foldedTable.indexOf(lastIndex))}
        isStuck={failures.length > 0}
      />
      {notes.length > 0 && <div className={styles['failures']}>{notes}</div>}
    </div>
  )
}
