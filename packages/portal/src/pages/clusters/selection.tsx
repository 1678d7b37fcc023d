import { useNavigate } from '@tanstack/react-router'
import { MapPin, Play, Tags, X } from 'lucide-react'
import { useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { Button } from '../../ui/button.tsx'
import { showErrorToast } from '../../ui/toast.tsx'
import type { VirtualColumn } from '../../ui/virtual-table.tsx'
import { BulkLabels, BulkMove } from './bulk-changes.tsx'
import { type ClusterFilter, isFiltered } from './cluster-filter.ts'
import { type ClusterSummary, fetchMatchingClusters } from './cluster-queries.ts'
import styles from './clusters.module.css'
import type { Target } from './label-queries.ts'

/** Selected rows. `isAll` selects all clusters that match the filter, including those that are not loaded. */
export interface Selection {
  ids: ReadonlySet<string>
  isAll: boolean
}

export const noSelection: Selection = { ids: new Set(), isAll: false }

export const selectionColumn = (
  { ids, isAll }: Selection,
  onChange: (selection: Selection) => void,
): VirtualColumn<ClusterSummary> => ({
  title: '',
  hiddenTitle: 'Selected',
  width: '1.5rem',
  narrow: 'lead',
  cell: ({ id, name }) => (
    <label className={styles['tick']}>
      <input
        type="checkbox"
        aria-label={`Select ${name}`}
        checked={isAll || ids.has(id)}
        disabled={isAll}
        onChange={({ currentTarget: { checked } }) => {
          const others = [...ids].filter((each) => each !== id)
          onChange({ ids: new Set(checked ? [...others, id] : others), isAll: false })
        }}
      />
    </label>
  ),
})

interface SelectionBarProps {
  filter: ClusterFilter
  total: number
  selection: Selection
  onChange: (selection: Selection) => void
}

/** Selects all matching clusters, and offers actions for the selected ones. */
export function SelectionBar({ filter, total, selection, onChange }: SelectionBarProps) {
  const count = selection.isAll ? total : selection.ids.size
  return (
    <div role="group" aria-label="Selected clusters" className={styles['buttons']}>
      <span role="status" className={styles['selected']}>
        {count > 0 && `${count.toLocaleString('en')} of ${total.toLocaleString('en')} selected`}
      </span>
      {count > 0 && <BulkActions targetOf={() => targetOf(filter, selection)} />}
      {!selection.isAll && (
        <Button onClick={() => onChange({ ids: new Set(), isAll: true })}>
          Select all {total.toLocaleString('en')}
        </Button>
      )}
      {count > 0 && (
        <Button icon={X} variant="quiet" onClick={() => onChange(noSelection)}>
          Clear selection
        </Button>
      )}
    </div>
  )
}

function BulkActions({ targetOf: resolveTarget }: { targetOf: () => Promise<Target> }) {
  const mayRun = useHasPermission('jobs:write')
  const mayWrite = useHasPermission('clusters:write')
  const navigate = useNavigate()
  const [isBusy, setIsBusy] = useState(false)
  const [change, setChange] = useState<{ Form: typeof BulkLabels; target: Target }>()
  const act = async (action: (target: Target) => unknown) => {
    setIsBusy(true)
    try {
      await action(await resolveTarget())
    } catch (error) {
      showErrorToast('The selected clusters could not be read', error)
    }
    setIsBusy(false)
  }
  const run = ({ selector, all, clusterIds }: Target) =>
    navigate({
      to: '/jobs/new',
      search: { ...(selector !== undefined && { selector }), ...(all && { all }) },
      ...(clusterIds !== undefined && { state: { clusterIds } }),
    })
  return (
    <>
      {mayRun && (
        <Button icon={Play} isBusy={isBusy} onClick={() => void act(run)}>
          Run a script
        </Button>
      )}
      {mayWrite && (
        <>
          <Button
            icon={Tags}
            isBusy={isBusy}
            onClick={() => void act((target) => setChange({ Form: BulkLabels, target }))}
          >
            Change labels
          </Button>
          <Button
            icon={MapPin}
            isBusy={isBusy}
            onClick={() => void act((target) => setChange({ Form: BulkMove, target }))}
          >
            Move
          </Button>
        </>
      )}
      {change !== undefined && <change.Form target={change.target} onClose={() => setChange(undefined)} />}
    </>
  )
}

async function targetOf(filter: ClusterFilter, { ids, isAll }: Selection): Promise<Target> {
  if (!isAll) return { clusterIds: [...ids] }
  const { selector, ...others } = filter
  // A target cannot contain filters other than the selector.
  if (isFiltered(others)) return { clusterIds: (await fetchMatchingClusters(filter)).map(({ id }) => id) }
  return selector === undefined ? { all: true } : { selector }
}

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** The clusters that were selected in the list. */
    clusterIds?: string[]
  }
}
