import { useQuery, type UseQueryResult } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { ServerOff } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { pollEvery } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { ClusterActions } from './cluster-actions.tsx'
import { type Cluster, clusterQuery, isNotFound } from './cluster-queries.ts'
import { JobsTab, NodesTab, OverviewTab } from './cluster-tabs.tsx'
import { EnrollmentCard, type IssuedToken } from './enrollment.tsx'
import { TimelineTab } from './timeline-tab.tsx'

const parent = { label: 'Clusters', to: '/clusters' } as const

export function ClusterPage() {
  const { clusterId } = useParams({ from: '/signed-in/clusters/$clusterId' })
  const query = useQuery({
    ...clusterQuery(clusterId),
    refetchInterval: (query) => (isNotFound(query.state.error) ? false : pollEvery(5)(query)),
  })
  if (isNotFound(query.error)) return <ClusterNotFound />
  if (query.data !== undefined) return <ClusterView key={clusterId} cluster={query.data} query={query} />
  return (
    <Page title="Cluster" parent={parent}>
      <Loaded query={query} what="the cluster">
        {() => null}
      </Loaded>
    </Page>
  )
}

const ClusterNotFound = () => (
  <Page title="Cluster not found" parent={parent}>
    <EmptyState
      icon={ServerOff}
      title="This cluster does not exist"
      action={<ButtonLink to="/clusters">All clusters</ButtonLink>}
    >
      It was removed, or the link is wrong.
    </EmptyState>
  </Page>
)

function ClusterView({ cluster, query: { error, refetch } }: { cluster: Cluster; query: UseQueryResult<Cluster> }) {
  const [issuedToken, setIssued] = useState<IssuedToken>()
  const [wasPending] = useState(cluster.status === 'Pending')
  return (
    <Page
      title={cluster.name}
      badge={<StatusBadge status={cluster.status} />}
      parent={parent}
      actions={<ClusterActions cluster={cluster} onIssued={setIssued} />}
    >
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {cluster.awaitsApproval && <ApprovalCard cluster={cluster} />}
      {(wasPending || issuedToken !== undefined) && !cluster.awaitsApproval && (
        <EnrollmentCard cluster={cluster} issuedToken={issuedToken} onIssued={setIssued} />
      )}
      <ClusterTabs cluster={cluster} />
    </Page>
  )
}

function ClusterTabs({ cluster }: { cluster: Cluster }) {
  const { tab } = useSearch({ from: '/signed-in/clusters/$clusterId' })
  const navigate = useNavigate({ from: '/clusters/$clusterId' })
  const maySeeJobs = useHasPermission('jobs:read')
  const tabs = [
    { name: 'overview', label: 'Overview', content: <OverviewTab cluster={cluster} /> },
    {
      name: 'nodes',
      label: `Nodes (${cluster.nodes.length.toLocaleString('en')})`,
      content: <NodesTab nodes={cluster.nodes} />,
    },
    { name: 'timeline', label: 'Timeline', content: <TimelineTab clusterId={cluster.id} /> },
    ...(maySeeJobs ? [{ name: 'jobs', label: 'Jobs', content: <JobsTab clusterId={cluster.id} /> }] : []),
  ]
  return (
    <Tabs
      label="Cluster details"
      tabs={tabs}
      value={tabs.find(({ name }) => name === tab)?.name ?? 'overview'}
      onChange={(name) => void navigate({ search: name === 'overview' ? {} : { tab: name }, replace: true })}
    />
  )
}
