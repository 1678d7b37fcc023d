import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import { useState } from 'react'
import { RequirePermission } from '../../shell/require-permission.tsx'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Time, totalDurationText } from '../../ui/time.tsx'
import { OperationProgress } from '../operation/operation-progress.tsx'
import { type Operation, operationQuery } from '../operation/use-operation.ts'
import { ReleaseCard } from './release-card.tsx'
import styles from './updates.module.css'
import { type JobSummary, useHistory } from './use-updates.ts'

export const UpdatesPage = () => (
  <RequirePermission permission="platform:admin" title="Updates">
    <Page title="Updates" lead="Update the platform or roll back to the previous version.">
      <Updates />
    </Page>
  </RequirePermission>
)

function Updates() {
  const { runningJob } = useHistory()
  // The id is kept after the end of the update, so that the result remains visible.
  const [followedJobId, setFollowedJobId] = useState<string>()
  if (runningJob !== undefined && runningJob.id !== followedJobId) setFollowedJobId(runningJob.id)
  return (
    <>
      {followedJobId !== undefined && (
        <Card title="Progress">
          <OperationProgress
            key={followedJobId}
            jobId={followedJobId}
            title={titleOf}
            after={(job) => <ReloadNote {...job} />}
          />
        </Card>
      )}
      <ReleaseCard isBusy={runningJob !== undefined} onStarted={setFollowedJobId} />
      <HistoryCard />
    </>
  )
}

function titleOf({ type, payload: { targetVersion, previousVersion } }: Operation): string {
  const action = type === 'PlatformRollback' ? 'Rollback to' : 'Update to'
  return `${action} ${String(targetVersion)} from ${String(previousVersion)}`
}

// The portal is part of the release, so an open tab is outdated after an update.
const ReloadNote = ({ status }: Operation) =>
  status === 'Completed' && (
    <p>
      This tab still shows the previous version of the portal.{' '}
      <Button icon={RotateCw} onClick={() => location.reload()}>
        Reload the portal
      </Button>
    </p>
  )

const columns: Column<JobSummary>[] = [
  { title: 'Time', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Operation', cell: (job) => <VersionLink {...job} /> },
  { title: 'Outcome', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Duration', cell: (job) => totalDurationText(job) || '–' },
]

export function HistoryCard() {
  const { query } = useHistory()
  return (
    <Card title="History">
      <Loaded query={query} what="the last updates">
        {(jobs) =>
          jobs.length > 0 ? (
            <Table label="Update history" columns={columns} rows={jobs} keyOf={({ id }) => id} />
          ) : (
            <p className={styles['quiet']}>No updates yet.</p>
          )
        }
      </Loaded>
    </Card>
  )
}

// The list of jobs has no versions, so each job is read separately.
function VersionLink({ id, type }: JobSummary) {
  const { data } = useQuery({ ...operationQuery(id), refetchInterval: false })
  const version = data?.payload['targetVersion']
  const action = type === 'PlatformRollback' ? 'Rollback to' : 'Update to'
  return (
    <Link to="/jobs/$jobId" params={{ jobId: id }}>
      {typeof version === 'string' ? `${action} ${version}` : `${action} …`}
    </Link>
  )
}
