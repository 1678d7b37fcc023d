import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { Badge, StatusBadge, variantOf } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './clusters.module.css'

export const relayUpdatesKey = ['relay-updates']

type Update = Schemas['RelayUpdateDetail']

/** The progress of an update, with the names of its clusters. */
export function RelayUpdateDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery({
    queryKey: [...relayUpdatesKey, id],
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/relay-updates/{id}', { params: { path: { id } }, signal })),
    refetchInterval: (current) =>
      current.state.data !== undefined && current.state.data.status !== 'Running' ? false : pollEvery(5)(current),
  })
  return (
    <Dialog isOpen onClose={onClose} title="Relay update" isWide>
      <Loaded query={query} what="the relay update">
        {(update) => <Progress update={update} />}
      </Loaded>
    </Dialog>
  )
}

const statuses = [
  ['Completed', 'completed'],
  ['RolledBack', 'rolledBack'],
  ['Skipped', 'skipped'],
  ['Offered', 'offered'],
  ['Pending', 'pending'],
] as const

function Progress({ update }: { update: Update }) {
  const { version, status, statusReason, counts, resolvedCount, clusters } = update
  const ended = counts.completed + counts.rolledBack + counts.skipped
  return (
    <div className={styles['stack']}>
      <p>
        Version {version} <StatusBadge status={status} />
      </p>
      {statusReason !== undefined && <p role="status">{statusReason}</p>}
      <progress aria-label="Updated relays" value={ended} max={resolvedCount}>
        {ended} of {resolvedCount}
      </progress>
      <ul className={styles['counts']} aria-label="Clusters by status">
        {statuses
          .filter(([, name]) => counts[name] > 0)
          .map(([each, name]) => (
            <li key={each}>
              <Badge variant={variantOf(each)}>
                {counts[name].toLocaleString('en')} {each}
              </Badge>
            </li>
          ))}
      </ul>
      <Table label="Clusters" columns={columns} rows={clusters} keyOf={({ clusterId }) => clusterId} />
      {resolvedCount > clusters.length && (
        <p>
          {clusters.length} of {resolvedCount.toLocaleString('en')} clusters are shown, rollbacks first.
        </p>
      )}
      {status === 'Running' && <CancelUpdate update={update} />}
    </div>
  )
}

const columns: Column<Update['clusters'][number]>[] = [
  {
    title: 'Cluster',
    cell: ({ clusterId, name }) =>
      name === '' ? (
        clusterId
      ) : (
        <Link to="/clusters/$clusterId" params={{ clusterId }}>
          {name}
        </Link>
      ),
  },
  { title: 'Status', isNarrow: true, cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Reason', cell: ({ reason }) => reason ?? '' },
]

function CancelUpdate({ update: { id, version } }: { update: Update }) {
  const queries = useQueryClient()
  const [isOpen, setIsOpen] = useState(false)
  const cancel = async () => {
    await unwrap(api.POST('/api/v1/relay-updates/{id}/cancel', { params: { path: { id } } }))
    showToast('Relay update cancelled', version)
    await queries.invalidateQueries({ queryKey: relayUpdatesKey })
  }
  return (
    <div>
      <Button onClick={() => setIsOpen(true)}>Cancel update</Button>
      <Confirm
        isOpen={isOpen}
        onClose={() => setIsOpen(false)}
        title={`Cancel the update to ${version}?`}
        description="No further relay receives it. Relays that are already installing it may complete it."
        confirmLabel="Cancel update"
        onConfirm={cancel}
      />
    </div>
  )
}
