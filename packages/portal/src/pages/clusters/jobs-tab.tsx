import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { SquareTerminal } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { durationText, Time } from '../../ui/time.tsx'
import styles from './clusters.module.css'

type Job = Schemas['JobSummary']

const mostShown = 10

const columns: Column<Job>[] = [
  {
    title: 'Job',
    cell: ({ id, type }) => (
      <Link to="/jobs/$jobId" params={{ jobId: id }}>
        {type === 'InvokeScript' ? 'Script' : type} <span className="visually-hidden">{id}</span>
      </Link>
    ),
  },
  {
    title: 'Status',
    cell: ({ status, statusReason }) => <StatusBadge status={status} {...(statusReason && { title: statusReason })} />,
  },
  { title: 'Submitted', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Took', cell: took },
]

function took({ startedAt, completedAt }: Job): string {
  if (startedAt === undefined || completedAt === undefined) return '–'
  return durationText(Date.parse(completedAt) - Date.parse(startedAt))
}

export function JobsTab({ clusterId }: { clusterId: string }) {
  const query = useQuery({
    queryKey: ['jobs', 'of-cluster', clusterId],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/jobs', { params: { query: { clusterId, pageSize: mostShown } }, signal })),
    refetchInterval: pollEvery(5),
  })
  return (
    <Loaded query={query} what="the jobs">
      {({ items, totalCount }) =>
        items.length === 0 ? (
          <NoJobs clusterId={clusterId} />
        ) : (
          <div className={styles['stack']}>
            <Table label="Jobs of the cluster" columns={columns} rows={items} keyOf={({ id }) => id} />
            <Link to="/jobs" search={{ clusterId }}>
              All jobs of this cluster ({totalCount.toLocaleString()})
            </Link>
          </div>
        )
      }
    </Loaded>
  )
}

function NoJobs({ clusterId }: { clusterId: string }) {
  const mayRun = useHasPermission('jobs:write')
  return (
    <EmptyState
      icon={SquareTerminal}
      title="No jobs yet"
      action={
        mayRun && (
          <ButtonLink to="/jobs/new" search={{ clusterId }}>
            Run the first job
          </ButtonLink>
        )
      }
    >
      Jobs of this cluster appear here.
    </EmptyState>
  )
}
