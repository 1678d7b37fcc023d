import { useNavigate, useSearch } from '@tanstack/react-router'
import { CircleFadingArrowUp } from 'lucide-react'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { withoutUndefined } from '../../lib/search.ts'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { pageSize } from '../../ui/use-pages.ts'
import { RowLink, type VirtualColumn } from '../../ui/virtual-table.tsx'
import { NewRelayUpdate } from './new-relay-update.tsx'
import { RelayUpdateDialog, relayUpdatesKey } from './relay-update-dialog.tsx'

/** Relay updates. The selector of a new one, or the update that is shown, is part of the URL. */
export const RelayUpdatesPage = () => (
  <RequirePermission permission="clusters:admin" title="Relay updates">
    <UpdateList />
  </RequirePermission>
)

function UpdateList() {
  const { selector, update } = useSearch({ from: '/signed-in/clusters/relay-updates' })
  const navigate = useNavigate({ from: '/clusters/relay-updates' })
  const [isStarting, setIsStarting] = useState(selector !== undefined)
  const show = (id: string | undefined) => {
    setIsStarting(false)
    void navigate({ search: withoutUndefined({ update: id }), replace: true })
  }
  return (
    <Page
      title="Relay updates"
      parent={{ label: 'Clusters', to: '/clusters' }}
      lead="Relays install the version of the platform: canaries first, then the others in groups."
      actions={
        <Button variant="primary" icon={CircleFadingArrowUp} onClick={() => setIsStarting(true)}>
          Update relays
        </Button>
      }
    >
      <PagedTable
        label="Relay updates"
        queryKey={relayUpdatesKey}
        pollSeconds={10}
        fetchPage={(page, signal) =>
          unwrap(api.GET('/api/v1/relay-updates', { params: { query: { page, pageSize } }, signal }))
        }
        columns={columns}
        rowKey={({ id }) => id}
        summary={(total) => (total === 1 ? '1 update' : `${total.toLocaleString('en')} updates`)}
        empty={
          <EmptyState icon={CircleFadingArrowUp} title="No relay updates">
            Update the platform first, then the relays of a few clusters.
          </EmptyState>
        }
      />
      {isStarting && <NewRelayUpdate selector={selector} onStarted={show} onClose={() => show(undefined)} />}
      {update !== undefined && !isStarting && <RelayUpdateDialog id={update} onClose={() => show(undefined)} />}
    </Page>
  )
}

const columns: VirtualColumn<Schemas['RelayUpdate']>[] = [
  {
    title: 'Version',
    width: 'minmax(6rem, 1fr)',
    narrow: 'start',
    cell: ({ id, version }) => (
      <RowLink to="/clusters/relay-updates" search={{ update: id }}>
        {version}
      </RowLink>
    ),
  },
  { title: 'Status', width: '8rem', narrow: 'end', cell: ({ status }) => <StatusBadge status={status} /> },
  {
    title: 'Completed',
    width: '9rem',
    isEnd: true,
    cell: ({ counts: { completed, skipped }, resolvedCount }) =>
      `${(completed + skipped).toLocaleString('en')} of ${resolvedCount.toLocaleString('en')}`,
  },
  {
    title: 'Rolled back',
    width: '7rem',
    isEnd: true,
    narrow: 'hidden',
    cell: ({ counts }) => counts.rolledBack.toLocaleString('en'),
  },
  { title: 'Created', width: '12rem', narrow: 'hidden', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Created by', width: 'minmax(6rem, 1fr)', narrow: 'hidden', cell: ({ createdBy }) => createdBy.username },
]
