import { SearchX, Server } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import { ColumnsButton, nameColumn, useClusterColumns } from './cluster-columns.tsx'
import { type ClusterFilter, type ClusterSort, clusterSorts, filterText, isFiltered } from './cluster-filter.ts'
import { clusterListKey } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { noSelection, type Selection, SelectionBar, selectionColumn } from './selection.tsx'
import { clusterCountText } from './selector-completions.ts'

interface NoMatchesProps {
  filter: ClusterFilter
  onClear: () => void
}

interface ListProps extends NoMatchesProps {
  sort: ClusterSort | undefined
  onSort: (sort: ClusterSort | undefined) => void
}

export function ClusterList({ filter, sort, onSort, onClear }: ListProps) {
  const { columns, ...chosen } = useClusterColumns()
  // The last jobs need another read by the platform, so they are requested only if their column is shown.
  const include = chosen.names.includes('job') ? ('lastJob' as const) : undefined
  // Another filter starts another selection.
  const filterKey = JSON.stringify(filter)
  const [state, setState] = useState({ filterKey, selection: noSelection })
  const selection = state.filterKey === filterKey ? state.selection : noSelection
  const select = (nextSelection: Selection) => setState({ filterKey, selection: nextSelection })
  return (
    <PagedTable
      label="Clusters"
      queryKey={[...clusterListKey, filter, sort, include]}
      fetchPage={(page, signal) => {
        const query = { ...filter, ...withoutUndefined({ sort, include }), page, pageSize }
        return unwrap(api.GET('/api/v1/clusters', { params: { query }, signal }))
      }}
      sorting={{ value: sort, onChange: (value) => onSort(oneOfIn({ value }, 'value', clusterSorts)) }}
      columns={[selectionColumn(selection, select), nameColumn, ...columns]}
      rowKey={({ id }) => id}
      pollSeconds={10}
      summary={clusterCountText}
      toolbar={(total) => (
        <div className={styles['toolbar']}>
          <SelectionBar filter={filter} total={total} selection={selection} onChange={select} />
          <ColumnsButton {...chosen} />
        </div>
      )}
      empty={isFiltered(filter) ? <NoMatches filter={filter} onClear={onClear} /> : <NoClusters />}
    />
  )
}

const NoMatches = ({ filter, onClear }: NoMatchesProps) => (
  <EmptyState icon={SearchX} title="No matching clusters" action={<Button onClick={onClear}>Clear filters</Button>}>
    No cluster matches {filterText(filter)}. Change or clear the filters.
  </EmptyState>
)

function NoClusters() {
  const mayWrite = useHasPermission('clusters:write')
  return (
    <EmptyState
      icon={Server}
      title="No clusters yet"
      action={
        mayWrite && (
          <ButtonLink to="/clusters/register" variant="primary">
            Register cluster
          </ButtonLink>
        )
      }
    >
      A cluster is a group of machines behind one relay. Scripts run there once the relay has enrolled.
      {!mayWrite && ' Ask a ClusterAdmin to register one.'}
    </EmptyState>
  )
}
