import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { Ban, RotateCw } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { isApiError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { queries, setQueryData } from '../../api/query.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import { BatchGroup } from './batch-group.tsx'
import { BatchProgress, batchQuery, polledBatchQuery } from './batch-progress.tsx'
import { BatchResults } from './batch-results.tsx'
import { BatchScript } from './batch-script.tsx'
import { submitterText } from './job-details.tsx'
import { JobList } from './job-list.tsx'
import { NotFoundNotice } from './not-found-notice.tsx'

type Batch = Schemas['Batch']

export function BatchPage() {
  const { batchId } = useParams({ from: '/signed-in/jobs/batches/$batchId' })
  const { with: others } = useSearch({ from: '/signed-in/jobs/batches/$batchId' })
  if (others !== undefined) return <BatchGroup batchIds={[batchId, ...others.split(',')]} />
  return <OneBatch batchId={batchId} />
}

function OneBatch({ batchId }: { batchId: string }) {
  const query = useQuery(polledBatchQuery(batchId, 2))
  const batch = query.data
  const isFinished = batch?.status === 'Finished'
  const progress = JSON.stringify(batch?.counts)
  useEffect(() => {
    // The job list stops polling when the batch has finished, so a change of the counts refreshes it.
    void queries.invalidateQueries({ queryKey: ['jobs', 'list'] })
  }, [isFinished, progress])
  if (isApiError(query.error, 'batch_not_found')) return <NotFoundNotice what="batch" />
  return (
    <Page
      title={batch?.title ?? 'Batch'}
      tabTitle={batch && `${batch.title} (batch, ${batch.status})`}
      lead={batch && countText(batch)}
      badge={batch && <Badge variant={batch.status === 'Finished' ? 'quiet' : 'busy'}>{batch.status}</Badge>}
      parent={{ label: 'Jobs', to: '/jobs' }}
      actions={batch && <BatchActions batch={batch} />}
    >
      <Loaded query={query} what="the batch">
        {(loaded) => (
          <>
            <BatchResults batchIds={[loaded.id]} />
            <BatchOverview batch={loaded} />
            <BatchScript batchId={loaded.id} />
            <Card title="Jobs">
              <JobList filter={{ batchId: loaded.id }} isLive={loaded.status !== 'Finished'} />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const countText = ({ submittedCount }: Batch): string =>
  `Batch of ${submittedCount} ${submittedCount === 1 ? 'job' : 'jobs'}`

const BatchOverview = ({ batch }: { batch: Batch }) => (
  <Card title="Progress">
    <BatchProgress counts={batch.counts} />
    <DescriptionList
      items={[
        ['Submitted', <Time key="s" at={batch.createdAt} isAbsolute />],
        ['Submitted by', submitterText(batch.createdBy)],
        ...(batch.reason === undefined ? [] : [['Reason', batch.reason] as const]),
        ['Finished', batch.finishedAt === undefined ? 'not yet' : <Time key="f" at={batch.finishedAt} isAbsolute />],
        ['Maximum concurrent jobs', batch.maxConcurrency ?? 'all'],
        ['Maximum failed jobs', batch.maxErrors ?? 'all'],
        ...(batch.retryOf === undefined ? [] : [['Retry of', <BatchLink key="r" id={batch.retryOf} />] as const]),
      ]}
    />
  </Card>
)

const BatchLink = ({ id }: { id: string }) => (
  <Link to="/jobs/batches/$batchId" params={{ batchId: id }}>
    {id}
  </Link>
)

function BatchActions({ batch }: { batch: Batch }) {
  const mayWrite = useHasPermission('jobs:write')
  const [openDialog, setOpenDialog] = useState<'cancel' | 'retry'>()
  const actions = useBatchActions(batch.id)
  if (!mayWrite) return null
  const unsuccessfulCount = batch.counts.failed + batch.counts.cancelled
  const close = () => setOpenDialog(undefined)
  return (
    <>
      {batch.status !== 'Finished' && (
        <Button icon={Ban} onClick={() => setOpenDialog('cancel')} disabled={batch.status === 'Cancelling'}>
          Cancel batch
        </Button>
      )}
      {unsuccessfulCount > 0 && (
        <Button icon={RotateCw} onClick={() => setOpenDialog('retry')}>
          Retry failed jobs
        </Button>
      )}
      <Confirm
        isOpen={openDialog === 'cancel'}
        onClose={close}
        title="Cancel this batch?"
        description="Queued jobs do not run and running jobs are stopped. Changes they already made remain."
        confirmLabel="Cancel batch"
        onConfirm={actions.cancel}
      />
      <Confirm
        isOpen={openDialog === 'retry'}
        onClose={close}
        title="Retry failed jobs?"
        description={`Submits the ${unsuccessfulCount} failed or cancelled jobs as a new batch.`}
        confirmLabel="Retry failed jobs"
        variant="primary"
        onConfirm={actions.retry}
      />
    </>
  )
}

function useBatchActions(batchId: string) {
  const navigate = useNavigate()
  const params = { path: { batchId } }
  return {
    cancel: async () => {
      const batch = await unwrap(api.POST('/api/v1/jobs/batch/{batchId}/cancel', { params }))
      await setQueryData(batchQuery(batchId).queryKey, () => batch)
      void queries.invalidateQueries({ queryKey: ['batches', 'list'] })
      await queries.invalidateQueries({ queryKey: ['jobs'] })
    },
    retry: async () => {
      const { batchId: newId, submittedCount } = await unwrap(
        api.POST('/api/v1/jobs/batch/{batchId}/retry', { params }),
      )
      showToast(`${submittedCount} jobs resubmitted`)
      void queries.invalidateQueries({ queryKey: ['batches', 'list'] })
      await navigate({ to: '/jobs/batches/$batchId', params: { batchId: newId } })
    },
  }
}
