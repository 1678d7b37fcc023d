import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { useDebounced } from '../../ui/hooks.ts'
import { Loaded } from '../../ui/state.tsx'
import { showErrorToast } from '../../ui/toast.tsx'
import { clusterNameKey, useClusterName } from '../clusters/cluster-queries.ts'
import { useCluster } from './job-queries.ts'
import styles from './jobs.module.css'

const maxTargets = 500
const pageSize = 100

interface TargetPickerProps {
  chosen: string[]
  onChange: (clusterIds: string[]) => void
}

/** Selects clusters. It offers the newest clusters that match the search. */
export function TargetPicker({ chosen, onChange }: TargetPickerProps) {
  const [searchText, setSearchText] = useState('')
  const search = useDebounced(searchText.trim())
  const query = useQuery({
    queryKey: ['clusters', 'targets', search],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/clusters', { params: { query: { pageSize, ...(search && { search }) } }, signal })),
    placeholderData: keepPreviousData,
    // Clusters may have been registered since the last visit.
    refetchOnMount: 'always',
  })
  const toggle = (id: string, isChosen: boolean) =>
    onChange(isChosen ? [...chosen, id].slice(0, maxTargets) : chosen.filter((each) => each !== id))
  return (
    <>
      <TextField
        name="clusterSearch"
        label="Clusters"
        placeholder="Name contains"
        value={searchText}
        onChange={setSearchText}
        onKeyDown={preventSubmit}
      />
      <Loaded query={query} what="clusters">
        {({ items, totalCount }) => (
          <>
            <div role="group" aria-label="Clusters to run on" className={styles['picker']}>
              {items.map((cluster) => (
                <Target key={cluster.id} cluster={cluster} isChosen={chosen.includes(cluster.id)} onToggle={toggle} />
              ))}
              {items.length === 0 && <NoClusters isNarrowed={search !== ''} />}
            </div>
            {totalCount > items.length && (
              <p className={styles['quiet']}>{totalCount - items.length} more. Search to find them.</p>
            )}
            <SearchChoice search={search} count={totalCount} chosen={chosen} onChange={onChange} />
          </>
        )}
      </Loaded>
      <Chosen chosen={chosen} onRemove={(id) => toggle(id, false)} />
    </>
  )
}

// The Enter key in the search field must not submit the form.
function preventSubmit(event: KeyboardEvent): void {
  if (event.key === 'Enter') event.preventDefault()
}

const NoClusters = ({ isNarrowed }: { isNarrowed: boolean }) => (
  <p className={styles['quiet']}>
    {isNarrowed ? (
      'No matching clusters.'
    ) : (
      <>
        No clusters yet. <Link to="/clusters">Go to clusters</Link>
      </>
    )}
  </p>
)

interface TargetProps {
  cluster: Schemas['ClusterSummary']
  isChosen: boolean
  onToggle: (id: string, isChosen: boolean) => void
}

const Target = ({ cluster: { id, name, status }, isChosen, onToggle }: TargetProps) => (
  <div className={styles['target']}>
    <CheckField label={name} checked={isChosen} onChange={(checked) => onToggle(id, checked)} />
    <StatusBadge status={status} />
  </div>
)

// Selects or deselects all clusters that match the search.
function SearchChoice({ search, count, chosen, onChange }: TargetPickerProps & { search: string; count: number }) {
  const [isBusy, setBusy] = useState(false)
  const selectAll = async () => {
    setBusy(true)
    try {
      onChange(await withMatching(chosen, search))
    } catch (error) {
      showErrorToast('The clusters were not selected', error)
    }
    setBusy(false)
  }
  if (count < 2) return null
  return (
    <div className={styles['counts']}>
      <Button onClick={() => void selectAll()} isBusy={isBusy} disabled={chosen.length === maxTargets}>
        Select all {Math.min(count, maxTargets)}
      </Button>
      <Button onClick={() => onChange([])} disabled={chosen.length === 0}>
        Select none
      </Button>
    </div>
  )
}

// Cursors find each cluster, even if others are registered or removed at the same time.
async function withMatching(chosen: readonly string[], search: string): Promise<string[]> {
  const found = new Set(chosen)
  let cursor: string | undefined
  do {
    const query = { pageSize, ...(search && { search }), ...(cursor !== undefined && { cursor }) }
    const page = await unwrap(api.GET('/api/v1/clusters', { params: { query } }))
    for (const { id, name } of page.items) {
      found.add(id)
      queries.setQueryData([...clusterNameKey, id], name)
    }
    cursor = page.nextCursor
  } while (cursor !== undefined && found.size < maxTargets)
  return [...found].slice(0, maxTargets)
}

const maxListed = 8

function Chosen({ chosen, onRemove }: { chosen: readonly string[]; onRemove: (id: string) => void }) {
  if (chosen.length === 0) return null
  return (
    <div>
      <p role="status">
        {chosen.length} selected{chosen.length === maxTargets && ' (the limit of a batch)'}
      </p>
      <ul className={styles['chosen']}>
        {chosen.slice(0, maxListed).map((id) => (
          <li key={id}>
            <ChosenCluster id={id} onRemove={onRemove} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function ChosenCluster({ id, onRemove }: { id: string; onRemove: (id: string) => void }) {
  const name = useClusterName(id) ?? id
  return (
    <Button icon={X} onClick={() => onRemove(id)} aria-label={`Do not run on ${name}`}>
      {name}
    </Button>
  )
}

interface NodePickerProps {
  clusterId: string
  chosen: string[] | undefined
  onChange: (nodeIds: string[] | undefined) => void
}

/** Selects individual nodes, or all nodes including those that are added later. */
export function NodePicker({ clusterId, chosen, onChange }: NodePickerProps) {
  const nodes = useCluster(clusterId).data?.nodes ?? []
  if (nodes.length < 2) return null
  const toggle = (id: string, isChosen: boolean) =>
    onChange(isChosen ? [...(chosen ?? []), id] : (chosen ?? []).filter((each) => each !== id))
  return (
    <>
      <CheckField
        label={`All ${nodes.length} nodes`}
        checked={chosen === undefined}
        onChange={(isAll) => onChange(isAll ? undefined : [])}
      />
      {chosen !== undefined && (
        <div role="group" aria-label="Nodes to run on" className={styles['picker']}>
          {nodes.map(({ id, name, status }) => (
            <div key={id} className={styles['target']}>
              <CheckField label={name} checked={chosen.includes(id)} onChange={(checked) => toggle(id, checked)} />
              <StatusBadge status={status} />
            </div>
          ))}
        </div>
      )}
    </>
  )
}
