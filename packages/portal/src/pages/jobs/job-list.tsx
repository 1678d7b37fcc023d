import { Link } from '@tanstack/react-router'
import { SquareTerminal } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time, totalDurationText } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { useClusterName } from '../clusters/cluster-queries.ts'
import type { JobFilter } from './job-filters.tsx'
import styles from './jobs.module.css'

type Job = Schemas['JobSummary']

const columns: VirtualColumn<Job>[] = [
  {
    title: 'Job',
    width: 'minmax(12rem, 2fr)',
    narrow: 'start',
    cell: ({ id, title }) => (
      <RowLink to="/jobs/$jobId" params={{ jobId: id }}>
        {title} <ShortId id={id} />
      </RowLink>
    ),
  },
  { title: 'Status', width: '9rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Cluster', width: 'minmax(8rem, 2fr)', cell: ({ clusterId }) => <ClusterName id={clusterId} /> },
  { title: 'By', width: 'minmax(6rem, 1fr)', narrow: 'hidden', cell: ({ createdBy }) => createdBy.username },
  { title: 'Submitted', width: '9rem', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Duration', width: '7rem', narrow: 'hidden', isEnd: true, cell: totalDurationText },
]

function ClusterName({ id }: { id: string | undefined }) {
  const name = useClusterName(id)
  if (id === undefined) return 'the platform'
  return (
    <Link to="/clusters/$clusterId" params={{ clusterId: id }}>
      {name ?? id}
    </Link>
  )
}

interface JobListProps {
  filter: JobFilter
  isLive: boolean
}

export const JobList = ({ filter, isLive }: JobListProps) => (
  <PagedTable
    label="Jobs"
    queryKey={['jobs', 'list', filter]}
    fetchPage={(page, signal) =>
      unwrap(api.GET('/api/v1/jobs', { params: { query: { ...filter, page, pageSize } }, signal }))
    }
    columns={columns}
    rowKey={({ id }) => id}
    pollSeconds={isLive ? 5 : undefined}
    summary={(total) => (total === 1 ? '1 job' : `${total.toLocaleString('en')} jobs`)}
    empty={<NoJobs isFiltered={Object.keys(filter).length > 0} />}
  />
)

function NoJobs({ isFiltered }: { isFiltered: boolean }) {
  const mayRun = useHasPermission('jobs:write')
  if (isFiltered) {
    return (
      <EmptyState icon={SquareTerminal} title="No matching jobs">
        Change or clear the filters.
      </EmptyState>
    )
  }
  return (
    <EmptyState
      icon={SquareTerminal}
      title="No jobs yet"
      action={
        mayRun && (
          <ButtonLink to="/jobs/new" variant="primary">
            Run a script
          </ButtonLink>
        )
      }
    >
      A job is a script that runs on the nodes of a cluster. Its output appears here while it runs.
    </EmptyState>
  )
}

/** The last characters of an id. Screen readers read the whole id. */
export const ShortId = ({ id }: { id: string }) => (
  <>
    <code aria-hidden className={styles['short']} title={id}>
      {id.slice(-6)}
    </code>
    <span className="visually-hidden">{id}</span>
  </>
)
