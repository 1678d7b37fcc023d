import { CheckField } from '../../ui/field.tsx'
import { StatusBadge } from '../../ui/badge.tsx'
import styles from './jobs.module.css'
import { useCluster } from './use-names.ts'

interface NodePickerProps {
  clusterId: string
  /** Undefined for all nodes. */
  chosen: string[] | undefined
  onChange: (nodeIds: string[] | undefined) => void
}

/** Selects some nodes, or all including future ones. */
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
