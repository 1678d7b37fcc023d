import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Columns3 } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { getPreference, setPreference } from '../../lib/preferences.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckGroup } from '../../ui/field.tsx'
import { Time } from '../../ui/time.tsx'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { type ClusterSummary, sitesQuery, typeNames } from './cluster-queries.ts'
import { LabelSummary } from './labels.tsx'

export const nameColumn: VirtualColumn<ClusterSummary> = {
  title: 'Name',
  sort: 'name',
  width: 'minmax(9rem, 3fr)',
  narrow: 'start',
  cell: ({ id, name }) => (
    <RowLink to="/clusters/$clusterId" params={{ clusterId: id }}>
      {name}
    </RowLink>
  ),
}

const derivedColumn = (title: string, sort: string, key: string, width: string): VirtualColumn<ClusterSummary> => ({
  title,
  sort,
  width,
  narrow: 'hidden',
  cell: ({ labels }) => labels[key],
})

const optionalColumns: Readonly<Record<string, VirtualColumn<ClusterSummary>>> = {
  status: {
    title: 'Status',
    sort: 'status',
    width: '7rem',
    narrow: 'end',
    cell: ({ status }) => <StatusBadge status={status} />,
  },
  labels: { title: 'Labels', width: 'minmax(9rem, 4fr)', cell: ({ labels }) => <LabelSummary labels={labels} /> },
  type: { title: 'Type', sort: 'type', width: '7rem', narrow: 'hidden', cell: ({ type }) => typeNames[type] },
  nodes: {
    title: 'Nodes',
    sort: 'nodeCount',
    width: '4.5rem',
    isEnd: true,
    narrow: 'hidden',
    cell: ({ nodeCount }) => nodeCount.toLocaleString('en'),
  },
  site: { title: 'Site', sort: 'site', width: 'minmax(5rem, 1fr)', cell: ({ siteId }) => <SiteName id={siteId} /> },
  os: derivedColumn('OS', 'os', 'platform/os', '5rem'),
  arch: derivedColumn('Architecture', 'arch', 'platform/arch', '7rem'),
  relay: derivedColumn('Relay', 'relayVersion', 'platform/relay-version', '5rem'),
  job: { title: 'Last job', width: 'minmax(8.5rem, 2fr)', cell: (cluster) => <LastJob cluster={cluster} /> },
  seen: {
    title: 'Last seen',
    sort: 'lastSeenAt',
    width: '8rem',
    cell: ({ lastSeenAt }) => (lastSeenAt ? <Time at={lastSeenAt} /> : 'never'),
  },
  registered: {
    title: 'Registered',
    sort: 'registeredAt',
    width: '8rem',
    narrow: 'hidden',
    cell: ({ registeredAt }) => <Time at={registeredAt} />,
  },
}

function LastJob({ cluster: { lastJob } }: { cluster: ClusterSummary }) {
  if (lastJob === undefined) return null
  const { id, status, title } = lastJob
  return (
    <>
      <StatusBadge status={status} />{' '}
      <Link to="/jobs/$jobId" params={{ jobId: id }}>
        {title}
      </Link>
    </>
  )
}

function SiteName({ id }: { id: string | undefined }) {
  const { data } = useQuery({ ...sitesQuery, enabled: id !== undefined })
  return data?.find((site) => site.id === id)?.name
}

const preferenceName = 'cluster_columns'
const defaultNames = ['status', 'labels', 'site', 'os', 'relay', 'job']

/** Returns the columns of the list, which are stored in this browser. */
export function useClusterColumns() {
  const mayReadJobs = useHasPermission('jobs:read')
  const [chosenNames, setNames] = useState(() => getPreference(preferenceName)?.split(',') ?? defaultNames)
  const names = mayReadJobs ? chosenNames : chosenNames.filter((name) => name !== 'job')
  const choose = (nextNames: string[]) => {
    setNames(nextNames)
    setPreference(preferenceName, nextNames.join(','))
  }
  const columns = Object.entries(optionalColumns).filter(([name]) => names.includes(name))
  return { columns: columns.map(([, column]) => column), names, choose }
}

export function ColumnsButton({ names, choose }: Pick<ReturnType<typeof useClusterColumns>, 'names' | 'choose'>) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button icon={Columns3} onClick={() => setIsOpen(true)}>
        Columns
      </Button>
      <Dialog isOpen={isOpen} onClose={() => setIsOpen(false)} title="Columns">
        <CheckGroup
          label="Shown columns"
          choices={Object.entries(optionalColumns).map(([value, { title }]) => ({ value, label: title }))}
          chosen={names}
          onChange={choose}
          hint="On narrow screens some columns are hidden."
        />
      </Dialog>
    </>
  )
}
