import { useId } from 'react'
import field from '../../ui/field.module.css'
import { classes } from '../../ui/class-names.ts'

interface NodeChoiceProps {
  nodeIds: readonly string[]
  nameOf: (nodeId: string) => string
  nodeId: string
  setNodeId: (nodeId: string) => void
}

/** Selects the output of one node, or of all. */
export function NodeChoice({ nodeIds, nameOf, nodeId, setNodeId }: NodeChoiceProps) {
  const id = useId()
  return (
    <label htmlFor={id}>
      <span className="visually-hidden">Node</span>
      <select
        id={id}
        className={classes(field['control'])}
        value={nodeId}
        onChange={(event) => setNodeId(event.currentTarget.value)}
      >
        <option value="">All {nodeIds.length} nodes</option>
        {nodeIds.map((each) => (
          <option key={each} value={each}>
            {nameOf(each)}
          </option>
        ))}
      </select>
    </label>
  )
}
