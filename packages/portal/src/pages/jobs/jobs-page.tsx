import { useNavigate, useSearch } from '@tanstack/react-router'
import { Play } from 'lucide-react'
import { useHasPermission } from '../../api/account.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { BatchList } from './batch-list.tsx'
import { JobFilters } from './job-filters.tsx'
import { JobList } from './job-list.tsx'
import styles from './jobs.module.css'

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
