import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { maxPageSize } from '../../api/all-pages.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { oneOfIn, withoutUndefined } from '../../lib/search.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { cursorQuery, loadedRows } from '../../ui/cursor-query.ts'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { useDebounced } from '../../ui/hooks.ts'
import { ShowMore } from '../../ui/show-more.tsx'
import { Loaded } from '../../ui/state.tsx'
import { showErrorToast } from '../../ui/toast.tsx'
import { fetchMatchingClusters, useCluster, useClusterName } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { isClusterFilter, savedFiltersQuery } from './saved-filters.tsx'
import { matchText, SelectorField } from './selector-field.tsx'
import { type TargetInput, type TargetKind, targetKinds } from './target.ts'

interface TargetPickerProps {
  input: TargetInput
  onChange: (input: TargetInput) => void
  /** The number of clusters of the target and the names of the first ones; undefined until they are known. */
  resolved: { resolvedCount: number; names: readonly string[] } | undefined
}

const kindNames: Record<TargetKind, string> = {
  picked: 'Selected clusters',
  selector: 'Label selector',
  saved: 'Saved filter',
  all: 'All clusters',
}

const kinds = targetKinds.map((value) => ({ value, label: kindNames[value] }))
const kindOf = (value: string): TargetKind => oneOfIn({ value }, 'value', targetKinds) ?? 'picked'

/** Determines the clusters of an action: selected ones, those of a label selector or a saved filter, or all. */
export function TargetPicker({ input, onChange, resolved }: TargetPickerProps) {
  const change = (values: Partial<TargetInput>) => onChange({ ...input, ...values })
  const { kind, selector, clusterIds, filterId } = input
  return (
    <>
      <SelectField
        name="target"
        label="Target"
        options={kinds}
        value={kind}
        onChange={(value) => change({ kind: kindOf(value) })}
      />
      {kind === 'picked' && <ClusterPicker chosen={clusterIds} onChange={(ids) => change({ clusterIds: ids })} />}
      {kind === 'selector' && (
        <SelectorField
          value={selector}
          onChange={(text) => change({ selector: text })}
          onEnter={() => undefined}
          isCounted
        />
      )}
      {kind === 'saved' && <FilterPicker filterId={filterId} onChange={(id) => change({ filterId: id })} />}
      {(kind === 'saved' || kind === 'all') && <p role="status">{resolved !== undefined && matchText(resolved)}</p>}
    </>
  )
}

function FilterPicker({ filterId, onChange }: { filterId: string; onChange: (filterId: string) => void }) {
  const { data = [] } = useQuery(savedFiltersQuery)
  const options = data.filter(isClusterFilter).map(({ id, name }) => ({ value: id, label: name }))
  const all = [{ value: '', label: options.length === 0 ? 'No saved filters' : 'Select a filter' }, ...options]
  return <SelectField name="savedFilter" label="Saved filter" options={all} value={filterId} onChange={onChange} />
}

interface ClusterPickerProps {
  chosen: string[]
  onChange: (clusterIds: string[]) => void
}

/** Selects clusters. It offers the clusters that match the search, by name. */
function ClusterPicker({ chosen, onChange }: ClusterPickerProps) {
  const [searchText, setSearchText] = useState('')
  const search = useDebounced(searchText.trim())
  const query = useInfiniteQuery({
    ...cursorQuery(['clusters', 'targets', search], (cursor, signal) => {
      const parameters = {
        pageSize: maxPageSize,
        sort: 'name' as const,
        ...withoutUndefined({ search: search || undefined, cursor }),
      }
      return unwrap(api.GET('/api/v1/clusters', { params: { query: parameters }, signal }))
    }),
    select: loadedRows,
    placeholderData: keepPreviousData,
    // Clusters may have been registered since the last visit.
    refetchOnMount: 'always',
  })
  const chosenIds = new Set(chosen)
  const toggle = (id: string, isAdded: boolean) =>
    onChange(isAdded ? [...chosen, id] : chosen.filter((each) => each !== id))
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
            <div role="group" aria-label="Clusters to select" className={styles['picker']}>
              {items.map((cluster) => (
                <ClusterChoice
                  key={cluster.id}
                  cluster={cluster}
                  isChosen={chosenIds.has(cluster.id)}
                  onToggle={toggle}
                />
              ))}
              {items.length === 0 && <NoClusters isNarrowed={search !== ''} />}
            </div>
            <ShowMore query={query} left={totalCount - items.length} />
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
        No clusters yet. <Link to="/clusters/register">Register a cluster</Link>
      </>
    )}
  </p>
)

interface ChoiceProps {
  cluster: Schemas['ClusterSummary']
  isChosen: boolean
  onToggle: (id: string, isChosen: boolean) => void
}

const ClusterChoice = ({ cluster: { id, name, status }, isChosen, onToggle }: ChoiceProps) => (
  <div className={styles['target']}>
    <CheckField label={name} checked={isChosen} onChange={(isChecked) => onToggle(id, isChecked)} />
    <StatusBadge status={status} />
  </div>
)

// Selects all clusters that match the search, or deselects all clusters.
function SearchChoice({ search, count, chosen, onChange }: ClusterPickerProps & { search: string; count: number }) {
  const [isBusy, setBusy] = useState(false)
  const selectAll = async () => {
    setBusy(true)
    try {
      const foundClusters = await fetchMatchingClusters(withoutUndefined({ search: search || undefined }))
      onChange([...new Set([...chosen, ...foundClusters.map(({ id }) => id)])])
    } catch (error) {
      showErrorToast('The clusters were not selected', error)
    }
    setBusy(false)
  }
  if (count < 2) return null
  return (
    <div className={styles['counts']}>
      <Button onClick={() => void selectAll()} isBusy={isBusy}>
        Select all {count}
      </Button>
      <Button onClick={() => onChange([])} disabled={chosen.length === 0}>
        Select none
      </Button>
    </div>
  )
}

const maxListed = 8

function Chosen({ chosen, onRemove }: { chosen: readonly string[]; onRemove: (id: string) => void }) {
  if (chosen.length === 0) return null
  return (
    <div>
      <p role="status">{chosen.length} selected</p>
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
    <Button icon={X} onClick={() => onRemove(id)} aria-label={`Deselect ${name}`}>
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
              <CheckField label={name} checked={chosen.includes(id)} onChange={(isChecked) => toggle(id, isChecked)} />
              <StatusBadge status={status} />
            </div>
          ))}
        </div>
      )}
    </>
  )
}
