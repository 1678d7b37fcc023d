import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/state.tsx'
import { useDebounced } from '../../ui/use-debounced.ts'
import { useClusterName } from '../clusters/cluster-names.ts'
import styles from './jobs.module.css'

/** The most jobs of one batch (section 8). */
const most = 500
const pageSize = 100

interface TargetPickerProps {
  chosen: string[]
  onChange: (clusterIds: string[]) => void
}

/** Chooses clusters: the newest that fit what is typed. */
export function TargetPicker({ chosen, onChange }: TargetPickerProps) {
  const [typed, setTyped] = useState('')
  const search = useDebounced(typed.trim())
  const query = useQuery({
    queryKey: ['clusters', 'targets', search],
    queryFn: ({ signal }) =>
      unwrap(api.GET('/api/v1/clusters', { params: { query: { pageSize, ...(search && { search }) } }, signal })),
    placeholderData: keepPreviousData,
    // Nothing asks again while one chooses: whoever comes to run something on a cluster that was just registered has to find it.
    refetchOnMount: 'always',
  })
  const toggle = (id: string, isChosen: boolean) =>
    onChange(isChosen ? [...chosen, id].slice(0, most) : chosen.filter((each) => each !== id))
  return (
    <>
      <TextField
        name="clusterSearch"
        label="Clusters"
        placeholder="Part of the name"
        value={typed}
        onChange={setTyped}
        onKeyDown={keepForm}
      />
      <Loaded query={query} what="clusters">
        {({ items, totalCount }) => (
          <>
            <div role="group" aria-label="Clusters to run on" className={styles['picker']}>
              {items.map((cluster) => (
                <Target key={cluster.id} cluster={cluster} isChosen={chosen.includes(cluster.id)} onToggle={toggle} />
              ))}
              {items.length === 0 && <NoTarget isNarrowed={search !== ''} />}
            </div>
            {totalCount > items.length && (
              <p className={styles['quiet']}>{totalCount - items.length} more: type part of a name to find them.</p>
            )}
            <PageChoice items={items} chosen={chosen} onChange={onChange} />
          </>
        )}
      </Loaded>
      <Chosen chosen={chosen} onRemove={(id) => toggle(id, false)} />
    </>
  )
}

/** Whoever ends a search by Enter does not mean to run the job. */
function keepForm(event: KeyboardEvent): void {
  if (event.key === 'Enter') event.preventDefault()
}

const NoTarget = ({ isNarrowed }: { isNarrowed: boolean }) => (
  <p className={styles['quiet']}>
    {isNarrowed ? (
      'No cluster has such a name.'
    ) : (
      <>
        No cluster is registered yet. <Link to="/clusters">Go to clusters</Link>
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

/** All that are shown, or none. */
function PageChoice({ items, chosen, onChange }: TargetPickerProps & { items: readonly Schemas['ClusterSummary'][] }) {
  const shown = items.map(({ id }) => id)
  if (shown.length < 2) return null
  const all = [...new Set([...chosen, ...shown])].slice(0, most)
  return (
    <div className={styles['counts']}>
      <Button onClick={() => onChange(all)} disabled={all.length === chosen.length}>
        Choose these {shown.length}
      </Button>
      <Button onClick={() => onChange([])} disabled={chosen.length === 0}>
        Choose none
      </Button>
    </div>
  )
}

const namedMost = 8

function Chosen({ chosen, onRemove }: { chosen: readonly string[]; onRemove: (id: string) => void }) {
  if (chosen.length === 0) return null
  return (
    <div>
      <p role="status">
        {chosen.length} chosen{chosen.length === most && ', which is the most of one batch'}
      </p>
      <ul className={styles['chosen']}>
        {chosen.slice(0, namedMost).map((id) => (
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
