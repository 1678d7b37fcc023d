import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Network, SquareTerminal } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { ButtonLink } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time, totalDurationText } from '../../ui/time.tsx'
import { type VirtualColumn, VirtualTable } from '../../ui/virtual-table.tsx'
import { type Cluster, sitesQuery, typeNames } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { LabelsCard } from './labels.tsx'
import { factColumns } from './node-columns.tsx'

export const OverviewTab = ({ cluster }: { cluster: Cluster }) => (
  <div className={styles['cards']}>
    <ClusterCard cluster={cluster} />
    <LabelsCard cluster={cluster} />
    <RelayCard relay={cluster.relay} />
  </div>
)

function ClusterCard({ cluster }: { cluster: Cluster }) {
  const { data: sites } = useQuery(sitesQuery)
  const site = sites?.find(({ id }) => id === cluster.siteId)?.name ?? cluster.siteId
  const onlineCount = cluster.nodes.filter(({ status }) => status === 'Online').length
  return (
    <Card title="Cluster">
      <DescriptionList
        items={[
          ['Type', typeNames[cluster.type]],
          ['Site', site ?? 'none'],
          ['Nodes', cluster.nodes.length === 0 ? 'none yet' : `${onlineCount} of ${cluster.nodes.length} online`],
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
          ['Version', relay.version ?? 'Not reported'],
          ['Last heartbeat', <Time key="heartbeat" at={relay.lastHeartbeatAt} />],
          ['Control channel', relay.channel === 'open' ? 'Open' : 'None; work starts with the next heartbeat'],
          ['Scripts', scriptIsolation(relay.scriptsIsolated)],
          ['Id', <Identifier key="id" id={relay.id} />],
        ]}
      />
    )}
  </Card>
)

function scriptIsolation(isIsolated: boolean | undefined): string {
  if (isIsolated === undefined) return 'Not reported'
  return isIsolated ? 'Cannot read the key of the relay' : 'Can read the key of the relay; use --run-as'
}

const Identifier = ({ id }: { id: string }) => (
  <span className={styles['id']}>
    <code>{id}</code> <CopyButton text={id} label={`Copy ${id}`} />
  </span>
)

type Node = Cluster['nodes'][number]

const nodeColumns: VirtualColumn<Node>[] = [
  { title: 'Name', width: 'minmax(10rem, 2fr)', narrow: 'start', cell: ({ name }) => name },
  { title: 'Status', width: '8rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  ...factColumns,
  { title: 'Id', width: 'minmax(8rem, 2fr)', narrow: 'hidden', cell: ({ id }) => <code title={id}>{id}</code> },
]

/** The nodes of a cluster. The table is virtual, because a cluster can have thousands of nodes. */
export const NodesTab = ({ nodes }: { nodes: readonly Node[] }) =>
  nodes.length === 0 ? (
    <EmptyState icon={Network} title="No nodes yet">
      Nodes are the machines that the relay runs scripts on. The relay reports them when it enrolls.
    </EmptyState>
  ) : (
    <VirtualTable
      label="Nodes"
      columns={nodeColumns}
      count={nodes.length}
      rowAt={(index) => nodes[index]}
      rowKey={({ id }) => id}
    />
  )

type Job = Schemas['JobSummary']

const maxShown = 10

const jobColumns: Column<Job>[] = [
  {
    title: 'Job',
    cell: ({ id, title }) => (
      <Link to="/jobs/$jobId" params={{ jobId: id }}>
        {title} <span className="visually-hidden">{id}</span>
      </Link>
    ),
  },
  {
    title: 'Status',
    cell: ({ status, statusReason }) => <StatusBadge status={status} {...(statusReason && { title: statusReason })} />,
  },
  { title: 'By', cell: ({ createdBy }) => createdBy.username },
  { title: 'Submitted', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Duration', cell: (job) => totalDurationText(job) || '–' },
]

export function JobsTab({ clusterId }: { clusterId: string }) {
  const query = useQuery({
    queryKey: ['jobs', 'of-cluster', clusterId],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/jobs', { params: { query: { clusterId, pageSize: maxShown } }, signal })),
    refetchInterval: pollEvery(5),
  })
  return (
    <Loaded query={query} what="the jobs">
      {({ items, totalCount }) =>
        items.length === 0 ? (
          <NoJobs clusterId={clusterId} />
        ) : (
          <div className={styles['stack']}>
            <Table label="Jobs of the cluster" columns={jobColumns} rows={items} keyOf={({ id }) => id} />
            <Link to="/jobs" search={{ clusterId }}>
              All jobs of this cluster ({totalCount.toLocaleString('en')})
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
