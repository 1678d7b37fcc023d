import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { StatusBadge } from '../../ui/badge.tsx'
import { Card } from '../../ui/card.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { durationText, Time } from '../../ui/time.tsx'
import { operationQuery } from '../operation/use-operation.ts'
import styles from './updates.module.css'
import { type JobSummary, useHistory } from './use-updates.ts'

const columns: Column<JobSummary>[] = [
  { title: 'When', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'What', cell: (job) => <What {...job} /> },
  { title: 'Outcome', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Took',
    cell: ({ startedAt, completedAt }) =>
      startedAt === undefined || completedAt === undefined
        ? '–'
        : durationText(Date.parse(completedAt) - Date.parse(startedAt)),
  },
]

export function HistoryCard() {
  const { query } = useHistory()
  return (
    <Card title="History">
      <Loaded query={query} what="the last updates">
        {(jobs) =>
          jobs.length > 0 ? (
            <Table label="Update history" columns={columns} rows={jobs} keyOf={({ id }) => id} />
          ) : (
            <p className={styles['quiet']}>No updates yet.</p>
          )
        }
      </Loaded>
    </Card>
  )
}

/** The list has no versions, so each finished job is read once. */
function What({ id, type }: JobSummary) {
  const { data } = useQuery({ ...operationQuery(id), refetchInterval: false })
  const version = data?.payload['targetVersion']
  const what = type === 'PlatformRollback' ? 'Rollback to' : 'Update to'
  return (
    <Link to="/jobs/$jobId" params={{ jobId: id }}>
      {typeof version === 'string' ? `${what} ${version}` : `${what} …`}
    </Link>
  )
}
