import { useQuery } from '@tanstack/react-query'
import { CircleCheck } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { pollEvery } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink, Spinner } from '../../ui/button.tsx'
import { type Cluster, clusterQuery, isGone } from './cluster-queries.ts'
import styles from './clusters.module.css'

const soonestMs = 2000
const latestMs = 10_000

/** Polls often at first, then at a tenth of the time waited. */
const pauseMs = (waitedMs: number): number => Math.min(latestMs, Math.max(soonestMs, waitedMs / 10))

interface WaitingProps {
  clusterId: string
  /** The relay to be replaced. */
  previousRelayId?: string | undefined
  /** Whether to link to the cluster's page. */
  isElsewhere?: boolean
}

/** Polls until the relay has enrolled, then links to the next steps. */
export function WaitingForRelay({ clusterId, previousRelayId, isElsewhere = false }: WaitingProps) {
  const [sinceMs] = useState(Date.now)
  const isThere = (cluster: Cluster | undefined) =>
    cluster?.relay != null && cluster.relay.id !== previousRelayId && cluster.status !== 'Pending'
  const { data: cluster } = useQuery({
    ...clusterQuery(clusterId),
    refetchInterval: (query) =>
      isThere(query.state.data) || isGone(query.state.error)
        ? false
        : Math.max(pauseMs(Date.now() - sinceMs), pollEvery(soonestMs / 1000)(query)),
  })
  return (
    <>
      <div role="status" className={styles['waiting']}>
        {isThere(cluster) ? (
          <>
            <CircleCheck size={18} aria-hidden className={styles['good']} /> The relay has enrolled.
          </>
        ) : (
          <>
            <Spinner /> Waiting for the relay … This page updates when it enrolls.
          </>
        )}
      </div>
      {cluster !== undefined && isThere(cluster) && <Enrolled cluster={cluster} isElsewhere={isElsewhere} />}
    </>
  )
}

/** Longer lists are on the cluster's page. */
const mostNamed = 12

function Enrolled({ cluster: { id, nodes }, isElsewhere }: { cluster: Cluster; isElsewhere: boolean }) {
  const mayRun = useHasPermission('jobs:write')
  const others = nodes.length - mostNamed
  return (
    <>
      <ul className={styles['nodes']} aria-label="Nodes">
        {nodes.slice(0, mostNamed).map((node) => (
          <li key={node.id}>
            {node.name} <StatusBadge status={node.status} />
          </li>
        ))}
        {others > 0 && <li className={styles['quiet']}>and {others.toLocaleString()} more</li>}
      </ul>
      <div className={styles['buttons']}>
        {mayRun && (
          <ButtonLink to="/jobs/new" search={{ clusterId: id }} look="primary">
            Run a job
          </ButtonLink>
        )}
        {isElsewhere && (
          <ButtonLink to="/clusters/$clusterId" params={{ clusterId: id }}>
            Open cluster
          </ButtonLink>
        )}
      </div>
    </>
  )
}
