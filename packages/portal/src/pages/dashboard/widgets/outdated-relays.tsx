import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { configurationQuery, useHasPermission } from '../../../api/account.ts'
import { api, unwrap } from '../../../api/client.ts'
import { clusterListKey } from '../../clusters/cluster-queries.ts'
import { isOutdated } from './relay-versions.ts'
import styles from './widgets.module.css'

const key = 'platform/relay-version'

// The selector has at most 1,000 characters.
const maxVersions = 20
const maxNames = 3

/** A line that names clusters whose relays are outdated, as defined by `isOutdated`. */
export function OutdatedRelays() {
  const { version } = useSuspenseQuery(configurationQuery).data
  const { data } = useQuery({
    queryKey: ['labels', key],
    queryFn: () => unwrap(api.GET('/api/v1/clusters/labels', { params: { query: { key } } })),
    // This query reads the labels of all clusters, and versions change rarely.
    staleTime: 600_000,
  })
  const outdatedVersions = (data?.items[0]?.values ?? []).filter(({ value }) => isOutdated(value, version))
  const count = outdatedVersions.reduce((sum, { clusterCount }) => sum + clusterCount, 0)
  if (count === 0) return null
  const versions = outdatedVersions.map(({ value }) => value).slice(0, maxVersions)
  return <OutdatedLine selector={`${key} in (${versions.join(',')})`} count={count} version={version} />
}

function OutdatedLine({ selector, count, version }: { selector: string; count: number; version: string }) {
  const { data } = useQuery({
    queryKey: [...clusterListKey, 'outdated', selector],
    queryFn: () => unwrap(api.GET('/api/v1/clusters', { params: { query: { selector, pageSize: maxNames } } })),
    staleTime: 600_000,
  })
  const mayUpdate = useHasPermission('clusters:admin')
  const names = data?.items.map(({ name }) => name) ?? []
  const others = count - names.length
  return (
    <p className={styles['nothing']}>
      <Link to="/clusters" search={{ selector }}>
        {count === 1 ? '1 relay' : `${count.toLocaleString('en')} relays`}
      </Link>{' '}
      {count === 1 ? 'is' : 'are'} at least two minor versions, or a major version, older than the platform ({version})
      {names.length > 0 && `: ${names.join(', ')}${others > 0 ? ` and ${others.toLocaleString('en')} more` : ''}`}.
      {mayUpdate && (
        <>
          {' '}
          <Link to="/clusters/relay-updates" search={{ selector }}>
            Update them
          </Link>
        </>
      )}
    </p>
  )
}
