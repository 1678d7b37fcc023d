import { useQuery } from '@tanstack/react-query'
import { StatusBadge } from '../../ui/badge.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { Time } from '../../ui/time.tsx'
import { type Cluster, sitesQuery, typeNames } from './cluster-queries.ts'
import styles from './clusters.module.css'

export const OverviewTab = ({ cluster }: { cluster: Cluster }) => (
  <div className={styles['cards']}>
    <ClusterCard cluster={cluster} />
    <RelayCard relay={cluster.relay} />
  </div>
)

function ClusterCard({ cluster }: { cluster: Cluster }) {
  const { data: sites } = useQuery(sitesQuery)
  const site = sites?.find(({ id }) => id === cluster.siteId)?.name ?? cluster.siteId
  const online = cluster.nodes.filter(({ status }) => status === 'Online').length
  return (
    <Card title="Cluster">
      <DescriptionList
        items={[
          ['Type', typeNames[cluster.type]],
          ['Site', site ?? 'none'],
          ['Nodes', cluster.nodes.length === 0 ? 'none yet' : `${online} of ${cluster.nodes.length} online`],
          ['Registered', <Time key="registered" at={cluster.registeredAt} isAbsolute />],
          ['Last seen', cluster.lastSeenAt === null ? 'never' : <Time key="seen" at={cluster.lastSeenAt} />],
          ['Id', <Identifier key="id" id={cluster.id} />],
        ]}
      />
    </Card>
  )
}

const RelayCard = ({ relay }: { relay: Cluster['relay'] }) => (
  <Card title="Relay">
    {relay === null ? (
      <p className={styles['quiet']}>No relay has enrolled yet.</p>
    ) : (
      <DescriptionList
        items={[
          ['Status', <StatusBadge key="status" status={relay.status} />],
          ['Name', relay.displayName],
          ['Last heartbeat', <Time key="heartbeat" at={relay.lastHeartbeatAt} />],
          ['Id', <Identifier key="id" id={relay.id} />],
        ]}
      />
    )}
  </Card>
)

const Identifier = ({ id }: { id: string }) => (
  <span className={styles['id']}>
    <code>{id}</code> <CopyButton text={id} label={`Copy ${id}`} />
  </span>
)
