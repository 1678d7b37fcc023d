import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { Ban, Play } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery, setQueryData } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { useCluster, useClusterName } from '../clusters/cluster-queries.ts'
import { JobDetails, JobLead, JobSteps, NodeResults } from './job-details.tsx'
import { jobQuery, nodeNames } from './job-queries.ts'
import { NotFoundNotice } from './not-found-notice.tsx'
import { OutputPanel } from './output-panel.tsx'
import { ScriptCard } from './script-card.tsx'
import { isFinished } from './status.ts'

export function JobPage() {
  const { jobId } = useParams({ from: '/signed-in/jobs/$jobId' })
  const query = useQuery({
    ...jobQuery(jobId),
    refetchInterval: (query) => (query.state.data && isFinished(query.state.data.status) ? false : pollEvery(2)(query)),
  })
  const clusterName = useClusterName(query.data?.clusterId)
  if (isApiError(query.error, 'job_not_found')) return <NotFoundNotice what="job" />
  const job = query.data
  return (
    <Page
      title={job?.title ?? 'Job'}
      tabTitle={job && tabTitleOf(job, clusterName)}
      badge={job && <StatusBadge status={job.status} />}
      lead={job && <JobLead job={job} clusterName={clusterName} />}
      parent={{ label: 'Jobs', to: '/jobs' }}
      actions={job && <JobActions job={job} />}
    >
      <Loaded query={query} what="the job">
        {(loaded) => <JobView key={loaded.id} job={loaded} />}
      </Loaded>
    </Page>
  )
}

const tabTitleOf = ({ title, status }: Schemas['Job'], clusterName: string | undefined): string =>
  `${title}${clusterName === undefined ? '' : ` on ${clusterName}`} (${status})`

function JobView({ job }: { job: Schemas['Job'] }) {
  const { data: cluster } = useCluster(job.clusterId)
  const nameOf = useMemo(() => nodeNames(cluster), [cluster])
  const { script } = job.payload
  return (
    <>
      {job.type === 'InvokeScript' && job.status !== 'Queued' && <OutputPanel jobId={job.id} nameOf={nameOf} />}
      {job.steps !== undefined && job.steps.length > 0 && <JobSteps steps={job.steps} />}
      {job.result !== undefined && job.result.nodes.length > 0 && (
        <NodeResults nodes={job.result.nodes} nameOf={nameOf} />
      )}
      <JobDetails job={job} clusterName={cluster?.name} />
      {typeof script === 'string' && <ScriptCard script={script} />}
    </>
  )
}

function JobActions({ job }: { job: Schemas['Job'] }) {
  const mayWrite = useHasPermission('jobs:write')
  const [isConfirming, setIsConfirming] = useState(false)
  if (!mayWrite || job.type !== 'InvokeScript') return null
  const cancel = async () => {
    const updatedJob = await unwrap(api.POST('/api/v1/jobs/{id}/cancel', { params: { path: { id: job.id } } }))
    await setQueryData(jobQuery(job.id).queryKey, () => updatedJob)
  }
  return (
    <>
      {isFinished(job.status) ? (
        <ButtonLink to="/jobs/new" search={{ from: job.id }} icon={Play}>
          Run again
        </ButtonLink>
      ) : (
        <Button icon={Ban} onClick={() => setIsConfirming(true)} disabled={job.cancelRequestedAt !== undefined}>
          {job.cancelRequestedAt === undefined ? 'Cancel job' : 'Cancelling …'}
        </Button>
      )}
      {job.batchId !== undefined && (
        <Link to="/jobs/batches/$batchId" params={{ batchId: job.batchId }}>
          Batch
        </Link>
      )}
      <Confirm
        isOpen={isConfirming}
        onClose={() => setIsConfirming(false)}
        title="Cancel this job?"
        description="Changes the script already made remain. An unresponsive relay gets one minute."
        confirmLabel="Cancel job"
        onConfirm={cancel}
      />
    </>
  )
}
