import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { Ban, RotateCw } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useHasPermission } from '../../api/account.ts'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { isApiError } from '../../api/api-error.ts'
import { pollEvery, setQueryData, queries } from '../../api/query.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast } from '../../ui/toast.tsx'
import { BatchProgress } from './batch-progress.tsx'
import { NotFoundNotice } from './not-found-notice.tsx'
import { JobList } from './job-list.tsx'

type Batch = Schemas['Batch']

const batchQuery = (batchId: string) =>
  queryOptions({
    queryKey: ['batches', 'one', batchId],
    queryFn: () => unwrap(api.GET('/api/v1/jobs/batch/{batchId}', { params: { path: { batchId } } })),
  })

export function BatchPage() {
  const { batchId } = useParams({ from: '/signed-in/jobs/batches/$batchId' })
  const query = useQuery({
    ...batchQuery(batchId),
    refetchInterval: (it) => (it.state.data?.status === 'Finished' ? false : pollEvery(2)(it)),
  })
  const batch = query.data
  const isOver = batch?.status === 'Finished'
  const progress = JSON.stringify(batch?.counts)
  useEffect(() => {
    // The job list does not poll after the batch has finished, so the last counts refresh it.
    void queries.invalidateQueries({ queryKey: ['jobs', 'list'] })
  }, [isOver, progress])
  if (isApiError(query.error, 'batch_not_found')) return <NotFoundNotice what="batch" />
  return (
    <Page
      title={batch === undefined ? 'Batch' : titleOf(batch)}
      mark={batch && <Badge tone={batch.status === 'Finished' ? 'quiet' : 'busy'}>{batch.status}</Badge>}
      trail={{ label: 'Jobs', to: '/jobs' }}
      actions={batch && <BatchActions batch={batch} />}
    >
      <Loaded query={query} what="the batch">
        {(it) => (
          <>
            <BatchOverview batch={it} />
            <Card title="Jobs">
              <JobList filter={{ batchId: it.id }} isLive={it.status !== 'Finished'} />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const titleOf = ({ submittedCount }: Batch): string =>
  `Batch of ${submittedCount} ${submittedCount === 1 ? 'job' : 'jobs'}`

const BatchOverview = ({ batch }: { batch: Batch }) => (
  <Card title="Progress">
    <BatchProgress counts={batch.counts} />
    <DescriptionList
      items={[
        ['Submitted', <Time key="s" at={batch.createdAt} isAbsolute />],
        ['Finished', batch.finishedAt === undefined ? 'not yet' : <Time key="f" at={batch.finishedAt} isAbsolute />],
        ['At once', batch.maxConcurrency ?? 'all'],
        ['Failure limit', batch.maxErrors ?? 'never'],
        ...(batch.retryOf === undefined ? [] : [['Runs again', <BatchLink key="r" id={batch.retryOf} />] as const]),
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
  const [asking, setAsking] = useState<'cancel' | 'retry'>()
  const actions = useBatchActions(batch.id)
  if (!mayWrite) return null
  const unsuccessful = batch.counts.failed + batch.counts.cancelled
  const close = () => setAsking(undefined)
  return (
    <>
      {batch.status !== 'Finished' && (
        <Button icon={Ban} onClick={() => setAsking('cancel')} disabled={batch.status === 'Cancelling'}>
          Cancel batch
        </Button>
      )}
      {unsuccessful > 0 && (
        <Button icon={RotateCw} onClick={() => setAsking('retry')}>
          Retry failed jobs
        </Button>
      )}
      <Confirm
        isOpen={asking === 'cancel'}
        onClose={close}
        title="Cancel this batch?"
        description="Queued jobs do not run and running jobs are stopped. Changes they already made remain."
        confirmLabel="Cancel batch"
        onConfirm={actions.cancel}
      />
      <Confirm
        isOpen={asking === 'retry'}
        onClose={close}
        title="Retry failed jobs?"
        description={`Submits the ${unsuccessful} failed or cancelled jobs as a new batch.`}
        confirmLabel="Retry failed jobs"
        look="primary"
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
