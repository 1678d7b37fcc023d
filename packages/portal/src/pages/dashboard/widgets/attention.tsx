import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { api, unwrap } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'
import { StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { Time } from '../../../ui/time.tsx'
import { EmptyWidget } from './empty.tsx'
import styles from './widgets.module.css'

const statuses = ['Offline', 'Degraded'] as const
const pageSize = 8
/** The summary triggers a refetch; this covers changes that cancel each other out. */
const pollSeconds = 60

/** Offline and degraded clusters, worst first. Requests nothing while the summary counts none. */
export const Attention = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ clusters }) => <Ailing counts={statuses.map((status) => clusters?.byStatus[status] ?? 0)} />}
  </Loaded>
)

function Ailing({ counts }: { counts: readonly number[] }) {
  const isAny = counts.some((count) => count > 0)
  const query = useQuery({
    queryKey: ['clusters', 'attention', ...counts],
    enabled: isAny,
    queryFn: async () => {
      const wanted = statuses.filter((_status, index) => (counts[index] ?? 0) > 0)
      const pages = wanted.map((status) =>
        unwrap(api.GET('/api/v1/clusters', { params: { query: { status, pageSize } } })),
      )
      return (await Promise.all(pages)).flatMap(({ items }) => items).slice(0, pageSize)
    },
    placeholderData: keepPreviousData,
    refetchInterval: pollEvery(pollSeconds),
  })
  if (!isAny) {
    return <EmptyWidget text="No cluster is offline or degraded." to={{ to: '/clusters' }} label="All clusters" />
  }
  return (
    <Loaded query={query} what="clusters">
      {(clusters) => (
        <ul className={styles['rows']}>
          {clusters.map(({ id, name, status, lastSeenAt }) => (
            <li key={id}>
              <StatusBadge status={status} />
              <Link to="/clusters/$clusterId" params={{ clusterId: id }} className={styles['name']}>
                {name}
              </Link>
              {lastSeenAt !== null && (
                <span>
                  seen <Time at={lastSeenAt} />
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  )
}
