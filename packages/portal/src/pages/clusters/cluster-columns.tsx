import { useQuery } from '@tanstack/react-query'
import { Columns3 } from 'lucide-react'
import { useState } from 'react'
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
  width: 'minmax(10rem, 3fr)',
  narrow: 'start',
  cell: ({ id, name }) => (
    <RowLink to="/clusters/$clusterId" params={{ clusterId: id }}>
      {name}
    </RowLink>
  ),
}

const derived = (title: string, key: string, width: string): VirtualColumn<ClusterSummary> => ({
  title,
  width,
  narrow: 'hidden',
  cell: ({ labels }) => labels[key],
})

const optionalColumns: Readonly<Record<string, VirtualColumn<ClusterSummary>>> = {
  status: { title: 'Status', width: '7.5rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  labels: { title: 'Labels', width: 'minmax(10rem, 4fr)', cell: ({ labels }) => <LabelSummary labels={labels} /> },
  type: { title: 'Type', width: '7rem', narrow: 'hidden', cell: ({ type }) => typeNames[type] },
  nodes: {
    title: 'Nodes',
    width: '4rem',
    isEnd: true,
    narrow: 'hidden',
    cell: ({ nodeCount }) => nodeCount.toLocaleString(),
  },
  site: { title: 'Site', width: 'minmax(6rem, 1fr)', cell: ({ siteId }) => <SiteName id={siteId} /> },
  os: derived('OS', 'platform/os', '6rem'),
  arch: derived('Architecture', 'platform/arch', '7rem'),
  relay: derived('Relay version', 'platform/relay-version', '7rem'),
  seen: {
    title: 'Last seen',
    width: '8rem',
    cell: ({ lastSeenAt }) => (lastSeenAt ? <Time at={lastSeenAt} /> : 'never'),
  },
  registered: {
    title: 'Registered',
    width: '8rem',
    narrow: 'hidden',
    cell: ({ registeredAt }) => <Time at={registeredAt} />,
  },
}

function SiteName({ id }: { id: string | undefined }) {
  const { data } = useQuery({ ...sitesQuery, enabled: id !== undefined })
  return data?.find((site) => site.id === id)?.name
}

const preference = 'cluster_columns'
const defaultNames = ['status', 'labels', 'nodes', 'site', 'seen']

/** The columns of the list, which this browser remembers. */
export function useClusterColumns() {
  const [names, setNames] = useState(() => getPreference(preference)?.split(',') ?? defaultNames)
  const choose = (chosen: string[]) => {
    setNames(chosen)
    setPreference(preference, chosen.join(','))
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
