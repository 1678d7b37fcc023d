import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { maxPageSize } from '../../api/all-pages.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { Badge, StatusBadge, variantOf } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { cursorQuery, loadedRows } from '../../ui/cursor-query.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { ShowMore } from '../../ui/show-more.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { showToast } from '../../ui/toast.tsx'
import styles from './clusters.module.css'

export const relayUpdatesKey = ['relay-updates']

type Update = Schemas['RelayUpdate']
type UpdateCluster = Schemas['RelayUpdateCluster']

export function RelayUpdateDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery({
    queryKey: [...relayUpdatesKey, id],
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/relay-updates/{id}', { params: { path: { id } }, signal })),
    refetchInterval: (query) =>
      query.state.data !== undefined && query.state.data.status !== 'Running' ? false : pollEvery(5)(query),
  })
  return (
    <Dialog isOpen onClose={onClose} title="Relay update" isWide>
      <Loaded query={query} what="the relay update">
        {(update) => <Progress update={update} loadedAtMs={query.dataUpdatedAt} />}
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

const statusNames = statuses.map(([each]) => each)
const statusOptions = [{ value: '', label: 'All' }, ...statusNames.map((each) => ({ value: each, label: each }))]

interface ProgressProps {
  update: Update
  loadedAtMs: number
}

function Progress({ update, loadedAtMs }: ProgressProps) {
  const { version, status, statusReason, counts, resolvedCount } = update
  const endedCount = counts.completed + counts.rolledBack + counts.skipped
  return (
    <div className={styles['stack']}>
      <p>
        Version {version} <StatusBadge status={status} />
      </p>
      {statusReason !== undefined && <p role="status">{statusReason}</p>}
      <progress aria-label="Updated relays" value={endedCount} max={resolvedCount}>
        {endedCount} of {resolvedCount}
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
      <Clusters update={update} loadedAtMs={loadedAtMs} />
      {status === 'Running' && <CancelUpdate update={update} />}
    </div>
  )
}

/** Lists the clusters with the chosen status. The default is `RolledBack` if any relay rolled back, else all. */
function Clusters({ update: { id, counts }, loadedAtMs }: ProgressProps) {
  const [picked, setPicked] = useState<string>()
  const chosenStatus = picked ?? (counts.rolledBack > 0 ? 'RolledBack' : '')
  const status = oneOfIn({ chosenStatus }, 'chosenStatus', statusNames)
  const query = useInfiniteQuery({
    ...cursorQuery([...relayUpdatesKey, id, 'clusters', status], (cursor, signal) => {
      const params = { path: { id }, query: { pageSize: maxPageSize, ...withoutUndefined({ status, cursor }) } }
      return unwrap(api.GET('/api/v1/relay-updates/{id}/clusters', { params, signal }))
    }),
    select: loadedRows,
  })
  const { refetch } = query
  // The clusters are refetched with the counts, so that both are equally recent.
  useEffect(() => void refetch({ cancelRefetch: false }), [refetch, loadedAtMs])
  return (
    <>
      <SelectField name="status" label="Status" value={chosenStatus} options={statusOptions} onChange={setPicked} />
      <Loaded query={query} what="the clusters">
        {({ items, totalCount }) => (
          <>
            {totalCount === 0 && <p className={styles['quiet']}>No cluster has this status.</p>}
            {totalCount > 0 && (
              <Table label="Clusters" columns={columns} rows={items} keyOf={({ clusterId }) => clusterId} />
            )}
            <ShowMore query={query} left={totalCount - items.length} />
          </>
        )}
      </Loaded>
    </>
  )
}

const columns: Column<UpdateCluster>[] = [
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
