import { Link } from '@tanstack/react-router'
import { ArrowUp } from 'lucide-react'
import { Badge, StatusBadge } from '../../ui/badge.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { ModuleActions } from './module-actions.tsx'
import styles from './modules.module.css'
import type { ModuleEntry } from './use-modules.ts'
import { VerifiedBadge } from './verified-badge.tsx'

interface ModuleTableProps {
  entries: readonly ModuleEntry[]
  onStarted: (moduleId: string, jobId: string) => void
}

const nameId = (id: string): string => `module-${id}`

const columnsOf = (onStarted: ModuleTableProps['onStarted']): Column<ModuleEntry>[] => [
  { title: 'Module', cell: (entry) => <Name {...entry} /> },
  { title: 'Version', cell: (entry) => <Version {...entry} /> },
  { title: 'Signature', cell: ({ installed, release }) => <Signature of={installed ?? release} /> },
  { title: 'State', cell: (entry) => <State {...entry} /> },
  {
    title: '',
    hiddenTitle: 'Actions',
    cell: (entry) => (
      <ModuleActions entry={entry} describedBy={nameId(entry.id)} onStarted={(jobId) => onStarted(entry.id, jobId)} />
    ),
  },
]

export const ModuleTable = ({ entries, onStarted }: ModuleTableProps) => (
  <Table label="Modules" columns={columnsOf(onStarted)} rows={entries} keyOf={({ id }) => id} />
)

const Name = ({ id, name, description }: ModuleEntry) => (
  <span className={styles['name']}>
    <Link to="/modules" search={(search) => ({ ...search, module: id })} id={nameId(id)} resetScroll={false}>
      {name}
    </Link>
    <span className={styles['quiet']}>{description}</span>
  </span>
)

const Version = ({ release, installed }: ModuleEntry) => (
  <span className={styles['state']}>
    {installed?.version ?? release?.version}
    {release?.updateAvailable && (
      <Badge variant="busy" icon={ArrowUp}>
        {release.version} available
      </Badge>
    )}
  </span>
)

const Signature = ({ of }: { of: ModuleEntry['release'] | ModuleEntry['installed'] }) => of && <VerifiedBadge {...of} />

// The health of a running module says more than its state.
const State = ({ installed }: ModuleEntry) => (
  <span className={styles['state']}>
    {installed === undefined ? (
      <Badge>Not installed</Badge>
    ) : (
      <StatusBadge status={installed.state === 'Running' ? installed.health : installed.state} />
    )}
  </span>
)
