import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { configurationQuery } from '../../../api/account.ts'
import { api, unwrap } from '../../../api/client.ts'
import { isOutdated } from './relay-versions.ts'
import styles from './widgets.module.css'

const key = 'platform/relay-version'

/** A line that names relays that are much older than the platform. */
export function OutdatedRelays() {
  const { version } = useSuspenseQuery(configurationQuery).data
  const { data } = useQuery({
    queryKey: ['labels', key],
    queryFn: () => unwrap(api.GET('/api/v1/clusters/labels', { params: { query: { key } } })),
    // Reads the labels of all clusters, and versions change rarely.
    staleTime: 600_000,
  })
  const outdated = (data?.items[0]?.values ?? []).filter(({ value }) => isOutdated(value, version))
  const count = outdated.reduce((sum, { clusterCount }) => sum + clusterCount, 0)
  if (count === 0) return null
  const selector = `${key} in (${outdated.map(({ value }) => value).join(',')})`
  return (
    <p className={styles['nothing']}>
      <Link to="/clusters" search={{ selector }}>
        {count === 1 ? '1 relay' : `${count.toLocaleString()} relays`}
      </Link>{' '}
      {count === 1 ? 'is' : 'are'} at least two minor versions older than the platform ({version}).
    </p>
  )
}
