import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, unwrap } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'
import { StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import { titleOfType } from '../../jobs/status.ts'
import { EmptyWidget } from './empty.tsx'
import styles from './widgets.module.css'

const pollSeconds = 10
const pageSize = 8

export function RecentJobs() {
  const query = useQuery({
    queryKey: ['jobs', 'recent'],
    queryFn: () => unwrap(api.GET('/api/v1/jobs', { params: { query: { pageSize } } })),
    refetchInterval: pollEvery(pollSeconds),
  })
  return (
    <Loaded query={query} what="jobs">
      {({ items }) =>
        items.length === 0 ? (
          <EmptyWidget text="No jobs yet." to={{ to: '/jobs' }} label="Go to jobs" />
        ) : (
          <ul className={styles['rows']}>
            {items.map((job) => (
              <li key={job.id}>
                <StatusBadge status={job.status} />
                <Link to="/jobs/$jobId" params={{ jobId: job.id }} className={styles['name']}>
                  {titleOfType(job.type)} <code>{job.id.slice(-6)}</code>
                </Link>
                <Time at={job.createdAt} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
