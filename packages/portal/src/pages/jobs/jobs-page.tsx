import { useNavigate, useSearch } from '@tanstack/react-router'
import { Play, X } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { useClusterName } from '../clusters/cluster-queries.ts'
import { BatchList } from './batch-list.tsx'
import { JobList } from './job-list.tsx'
import styles from './jobs.module.css'
import { type JobStatus, jobStatuses } from './status.ts'

/** The lists of jobs and batches. The filter is part of the URL. */
export function JobsPage() {
  const { tab = 'jobs', ...filter } = useSearch({ from: '/signed-in/jobs' })
  const navigate = useNavigate({ from: '/jobs' })
  const mayRun = useHasPermission('jobs:write')
  const run = mayRun && (
    <ButtonLink to="/jobs/new" variant="primary" icon={Play}>
      Run a script
    </ButtonLink>
  )
  return (
    <Page title="Jobs" actions={run}>
      <Tabs
        label="View"
        value={tab === 'batches' ? 'batches' : 'jobs'}
        onChange={(name) => void navigate({ search: name === 'jobs' ? {} : { tab: name }, replace: true })}
        tabs={[
          {
            name: 'jobs',
            label: 'Jobs',
            content: (
              <div className={styles['list']}>
                <JobFilters filter={filter} onChange={(change) => void navigate({ search: change, replace: true })} />
                <JobList filter={filter} isLive />
              </div>
            ),
          },
          { name: 'batches', label: 'Batches', content: <BatchList /> },
        ]}
      />
    </Page>
  )
}

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

/**
 * The filters of the list. The cluster filter is set by a link on the page of the cluster and can only be removed here.
 */
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
