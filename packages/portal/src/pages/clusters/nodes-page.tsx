import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { Network, SearchX } from 'lucide-react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { CursorTable } from '../../ui/cursor-table.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { maxSearchLength, nodeSorts } from './cluster-filter.ts'
import styles from './clusters.module.css'
import { factColumns } from './node-columns.tsx'
import { SelectorFilter } from './selector-field.tsx'

type Node = Schemas['NodeSummary']

const columns: VirtualColumn<Node>[] = [
  {
    title: 'Name',
    sort: 'name',
    width: 'minmax(9rem, 2fr)',
    narrow: 'start',
    cell: ({ name, clusterId }) => (
      <RowLink to="/clusters/$clusterId" params={{ clusterId }} search={{ tab: 'nodes' }}>
        {name}
      </RowLink>
    ),
  },
  { title: 'Status', width: '7rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Cluster',
    width: 'minmax(8rem, 2fr)',
    cell: ({ clusterId, clusterName }) => (
      <Link to="/clusters/$clusterId" params={{ clusterId }}>
        {clusterName}
      </Link>
    ),
  },
  ...factColumns,
]

interface NodeFilter {
  selector?: string
  os?: string
  search?: string
}

/** The nodes of all clusters. The filter is part of the URL. */
export const NodesPage = () => (
  <RequirePermission permission="clusters:read" title="Nodes">
    <NodeList />
  </RequirePermission>
)

function NodeList() {
  const { sort, ...filter } = useSearch({ from: '/signed-in/nodes' })
  const navigate = useNavigate({ from: '/nodes' })
  const change = (values: { [Name in keyof NodeFilter]: string | undefined }) =>
    void navigate({ search: withoutUndefined({ ...filter, sort, ...values }), replace: true })
  return (
    <Page title="Nodes" lead="The machines of all clusters, with the facts that their relays report.">
      <div role="search" aria-label="Nodes" className={styles['filters']}>
        <SearchField
          label="Name"
          placeholder="Name contains"
          maxLength={maxSearchLength}
          search={filter.search}
          onChange={(search) => change({ search })}
        />
        <SearchField
          name="os"
          label="Operating system"
          placeholder="linux"
          maxLength={100}
          search={filter.os}
          onChange={(os) => change({ os })}
        />
        <div className={styles['selector']}>
          <SelectorFilter selector={filter.selector} onChange={(selector) => change({ selector })} />
        </div>
      </div>
      <CursorTable
        label="Nodes"
        queryKey={['nodes', 'list', filter, sort]}
        fetchPage={(cursor, signal) => {
          const query = { ...filter, ...withoutUndefined({ sort, cursor }), pageSize }
          return unwrap(api.GET('/api/v1/nodes', { params: { query }, signal }))
        }}
        columns={columns}
        sorting={{
          value: sort,
          onChange: (value) =>
            void navigate({ search: withoutUndefined({ ...filter, sort: oneOfIn({ value }, 'value', nodeSorts) }) }),
        }}
        rowKey={({ id }) => id}
        summary={(total) => (total === 1 ? '1 node' : `${total.toLocaleString('en')} nodes`)}
        empty={
          <NoNodes
            isFiltered={Object.keys(filter).length > 0}
            onClear={() => void navigate({ search: withoutUndefined({ sort }) })}
          />
        }
      />
    </Page>
  )
}

const NoNodes = ({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) =>
  isFiltered ? (
    <EmptyState icon={SearchX} title="No matching nodes" action={<Button onClick={onClear}>Clear filters</Button>}>
      Change or clear the filters.
    </EmptyState>
  ) : (
    <EmptyState icon={Network} title="No nodes yet">
      The relay of a cluster reports its nodes when it enrolls.
    </EmptyState>
  )
