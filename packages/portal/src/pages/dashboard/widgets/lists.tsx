import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, unwrap } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'
import { StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import { useClusterName } from '../../clusters/cluster-queries.ts'
import { Severity } from '../../notifications/severity.tsx'
import { useClusterCounts, type WidgetProps } from './cluster-counts.ts'
import { EmptyWidget } from './empty.tsx'
import { OutdatedRelays } from './outdated-relays.tsx'
import styles from './widgets.module.css'

const statuses = ['Offline', 'Degraded', 'Pending'] as const
const pageSize = 8

/**
 * Clusters that are offline or degraded or have never connected, worst first. The list is requested only if the counts
 * show any.
 */
export const Attention = ({ selector }: WidgetProps) => (
  <>
    <OutdatedRelays />
    <Loaded query={useClusterCounts(selector)} what="the numbers">
      {(counts) => <AttentionList counts={statuses.map((status) => counts[status])} selector={selector} />}
    </Loaded>
  </>
)

function AttentionList({ counts, selector }: { counts: readonly number[]; selector: string | undefined }) {
  const hasAny = counts.some((count) => count > 0)
  const query = useQuery({
    queryKey: ['clusters', 'attention', selector, ...counts],
    enabled: hasAny,
    queryFn: async () => {
      const nonEmptyStatuses = statuses.filter((_status, index) => (counts[index] ?? 0) > 0)
      const pages = nonEmptyStatuses.map((status) =>
        unwrap(
          api.GET('/api/v1/clusters', {
            params: { query: { status, pageSize, ...(selector !== undefined && { selector }) } },
          }),
        ),
      )
      return (await Promise.all(pages)).flatMap(({ items }) => items).slice(0, pageSize)
    },
    placeholderData: keepPreviousData,
    // Changed counts trigger a refetch. The poll covers changes that leave the counts the same.
    refetchInterval: pollEvery(60),
  })
  if (!hasAny) {
    return <EmptyWidget text="No cluster needs attention." to={{ to: '/clusters' }} label="All clusters" />
  }
  return (
    <Loaded query={query} what="clusters">
      {(clusters) => (
        <ul className={styles['rows']}>
          {clusters.map(({ id, name, status, lastSeenAt, registeredAt }) => (
            <li key={id}>
              <StatusBadge status={status} />
              <Link to="/clusters/$clusterId" params={{ clusterId: id }} className={styles['name']}>
                {name}
              </Link>
              <span>
                {lastSeenAt === null ? (
                  <>
                    never connected, registered <Time at={registeredAt} />
                  </>
                ) : (
                  <>
                    seen <Time at={lastSeenAt} />
                  </>
                )}
              </span>
            </li>
          ))}
          <AllOf counts={counts} selector={selector} />
        </ul>
      )}
    </Loaded>
  )
}

const statusTexts = ['offline', 'degraded', 'never connected']

const AllOf = ({ counts, selector }: { counts: readonly number[]; selector: string | undefined }) =>
  counts.reduce((sum, count) => sum + count, 0) > pageSize && (
    <li>
      All:
      {statuses.map(
        (status, index) =>
          counts[index] !== 0 && (
            <Link key={status} to="/clusters" search={{ status, ...(selector !== undefined && { selector }) }}>
              {counts[index]?.toLocaleString('en')} {statusTexts[index]}
            </Link>
          ),
      )}
    </li>
  )

export function RecentJobs() {
  const query = useQuery({
    queryKey: ['jobs', 'recent'],
    queryFn: () => unwrap(api.GET('/api/v1/jobs', { params: { query: { pageSize } } })),
    refetchInterval: pollEvery(10),
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
                  {job.title} <span className="visually-hidden">{job.id.slice(-6)}</span>
                </Link>
                <span className={styles['place']}>
                  <JobCluster id={job.clusterId} /> · {job.createdBy.username}
                </span>
                <Time at={job.createdAt} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}

function JobCluster({ id }: { id: string | undefined }) {
  const name = useClusterName(id)
  return id === undefined ? 'the platform' : (name ?? '…')
}

/** The newest unread notifications. They are refetched when the unread count of the summary changes. */
export function Unread() {
  const query = useQuery({
    queryKey: ['notifications', 'newest unread'],
    queryFn: () => unwrap(api.GET('/api/v1/notifications', { params: { query: { unreadOnly: true, pageSize: 6 } } })),
    staleTime: 60_000,
  })
  return (
    <Loaded query={query} what="notifications">
      {({ items }) =>
        items.length === 0 ? (
          <EmptyWidget text="No unread notifications." to={{ to: '/notifications' }} label="All notifications" />
        ) : (
          <ul className={styles['rows']}>
            {items.map(({ id, title, severity, createdAt }) => (
              <li key={id}>
                <Severity severity={severity} />
                <Link to="/notifications" className={styles['name']}>
                  {title}
                </Link>
                <Time at={createdAt} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  )
}
