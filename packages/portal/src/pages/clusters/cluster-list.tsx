import { useQuery } from '@tanstack/react-query'
import { SearchX, Server } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageRows } from '../../ui/use-pages.ts'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { type ClusterFilter, filterText, isFiltered } from './cluster-filter.ts'
import { clusterListKey, type ClusterSummary, sitesQuery, typeNames } from './cluster-queries.ts'

const columns: VirtualColumn<ClusterSummary>[] = [
  {
    title: 'Name',
    width: 'minmax(10rem, 3fr)',
    narrow: 'start',
    cell: ({ id, name }) => (
      <RowLink to="/clusters/$clusterId" params={{ clusterId: id }}>
        {name}
      </RowLink>
    ),
  },
  { title: 'Status', width: '7.5rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Type', width: '7rem', cell: ({ type }) => typeNames[type] },
  { title: 'Nodes', width: '4rem', isEnd: true, narrow: 'hidden', cell: ({ nodeCount }) => nodeCount.toLocaleString() },
  { title: 'Site', width: 'minmax(6rem, 1fr)', cell: ({ siteId }) => <SiteName id={siteId} /> },
  { title: 'Last seen', width: '8rem', cell: ({ lastSeenAt }) => (lastSeenAt ? <Time at={lastSeenAt} /> : 'never') },
  {
    title: 'Registered',
    width: '8rem',
    narrow: 'hidden',
    cell: ({ registeredAt }) => <Time at={registeredAt} />,
  },
]

function SiteName({ id }: { id: string | undefined }) {
  const { data } = useQuery({ ...sitesQuery, enabled: id !== undefined })
  return data?.find((site) => site.id === id)?.name
}

interface ListProps {
  filter: ClusterFilter
  onClear: () => void
}

export const ClusterList = ({ filter, onClear }: ListProps) => (
  <PagedTable
    label="Clusters"
    queryKey={[...clusterListKey, filter]}
    fetchPage={(page, signal) =>
      unwrap(api.GET('/api/v1/clusters', { params: { query: { ...filter, page, pageSize: pageRows } }, signal }))
    }
    columns={columns}
    rowKey={({ id }) => id}
    pollSeconds={10}
    summary={(total) => (total === 1 ? '1 cluster' : `${total.toLocaleString()} clusters`)}
    empty={isFiltered(filter) ? <NoMatches filter={filter} onClear={onClear} /> : <NoClusters />}
  />
)

const NoMatches = ({ filter, onClear }: ListProps) => (
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
