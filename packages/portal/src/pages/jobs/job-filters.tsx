import { X } from 'lucide-react'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { useClusterName } from '../clusters/cluster-names.ts'
import styles from './jobs.module.css'
import { type JobStatus, jobStatuses } from './status.ts'

export interface JobFilter {
  status?: JobStatus
  clusterId?: string
  batchId?: string
}

interface JobFiltersProps {
  filter: JobFilter
  onChange: (filter: JobFilter) => void
}

const statuses = [{ value: '', label: 'All' }, ...jobStatuses.map((status) => ({ value: status, label: status }))]

/** The cluster filter is set by a link from the cluster's page. */
export function JobFilters({ filter: { status, ...rest }, onChange }: JobFiltersProps) {
  const { clusterId, ...withoutCluster } = rest
  const name = useClusterName(clusterId)
  const change = (value: string): JobFilter => {
    const next = jobStatuses.find((each) => each === value)
    return next === undefined ? rest : { ...rest, status: next }
  }
  return (
    <div className={styles['filters']}>
      <SelectField
        name="status"
        label="Status"
        value={status ?? ''}
        options={statuses}
        onChange={(value) => onChange(change(value))}
      />
      {clusterId !== undefined && (
        <Button
          icon={X}
          onClick={() => onChange(status === undefined ? withoutCluster : { ...withoutCluster, status })}
        >
          Only on {name ?? clusterId}
        </Button>
      )}
    </div>
  )
}
