import { useNavigate, useSearch } from '@tanstack/react-router'
import { ScrollText } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button, TextButton } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { AddEntry, ExportMenu, VerifyButton } from './audit-actions.tsx'
import { type AuditFilter, AuditFilters } from './audit-filters.tsx'
import styles from './audit.module.css'
import { Actor, EntryDialog } from './entry-dialog.tsx'

type Entry = Schemas['AuditEntry']

const columnsOf = (show: (entry: Entry) => void): VirtualColumn<Entry>[] => [
  {
    title: 'Action',
    width: 'minmax(13rem, 2fr)',
    narrow: 'start',
    cell: (entry, fold) => (
      <span className={styles['run']}>
        <TextButton onClick={() => show(entry)}>
          {entry.action}
          <span className="visually-hidden"> {entry.seq}</span>
        </TextButton>
        {fold && (
          <button type="button" aria-expanded={fold.isOpen} className={styles['fold']} onClick={fold.toggle}>
            {fold.isOpen ? `hide ${fold.count}` : `and ${fold.count} more`}
          </button>
        )}
      </span>
    ),
  },
  { title: 'Time', width: '9rem', narrow: 'end', cell: ({ at }) => <Time at={at} /> },
  { title: 'Actor', width: 'minmax(8rem, 2fr)', cell: ({ actor }) => <Actor actor={actor} /> },
  { title: 'Resource', width: 'minmax(8rem, 2fr)', cell: ({ resource }) => <code>{resource}</code> },
  {
    title: 'Detail',
    width: 'minmax(8rem, 3fr)',
    narrow: 'hidden',
    cell: ({ detail, extra }) => (
      <>
        {extra && <Badge>extra</Badge>} {detail}
      </>
    ),
  },
]

export const AuditPage = () => (
  <RequirePermission permission="audit:read" title="Audit trail">
    <AuditTrail />
  </RequirePermission>
)

function AuditTrail() {
  const filter = useSearch({ from: '/signed-in/settings/audit' })
  const navigate = useNavigate({ from: '/settings/audit' })
  const [openEntry, setOpenEntry] = useState<Entry>()
  const [columns] = useState(() => columnsOf(setOpenEntry))
  const isFiltered = Object.keys(filter).length > 0
  const applyFilter = (search: AuditFilter) => void navigate({ search })
  return (
    <Page
      title="Audit trail"
      lead="Every change is recorded automatically. Entries form a hash chain, so tampering is detectable."
      actions={<AuditActions />}
    >
      <AuditFilters filter={filter} onChange={applyFilter} />
      <PagedTable
        label="Audit entries"
        queryKey={['audit', filter]}
        fetchPage={(page, signal) =>
          unwrap(api.GET('/api/v1/platform/audit', { params: { query: { ...filter, page, pageSize } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        // Sign-ins and sign-outs would hide the changes between them.
        {...(filter.action === undefined && { isFolded: isOfSameRun })}
        pollSeconds={15}
        summary={(total) => (total === 1 ? '1 entry' : `${total.toLocaleString('en')} entries`)}
        empty={<NoEntries isFiltered={isFiltered} onClear={() => applyFilter({})} />}
      />
      <EntryDialog
        entry={openEntry}
        onClose={() => setOpenEntry(undefined)}
        onFilter={(search) => {
          setOpenEntry(undefined)
          applyFilter(search)
        }}
      />
    </Page>
  )
}

const isSessionEntry = ({ action }: Entry): boolean => action === 'session.open' || action === 'session.close'
const isOfSameRun = (entry: Entry, newerEntry: Entry): boolean => isSessionEntry(entry) && isSessionEntry(newerEntry)

function AuditActions() {
  const mayAdd = useHasPermission('platform:admin')
  return (
    <>
      {mayAdd && <AddEntry />}
      <VerifyButton />
      <ExportMenu />
    </>
  )
}

const NoEntries = ({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) => (
  <EmptyState
    icon={ScrollText}
    title={isFiltered ? 'No matching entries' : 'No entries yet'}
    action={isFiltered && <Button onClick={onClear}>Show all entries</Button>}
  >
    {isFiltered ? 'Action and resource must match exactly.' : 'The first change adds an entry.'}
  </EmptyState>
)
