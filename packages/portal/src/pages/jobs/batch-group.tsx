import { useQueries } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Schemas } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import { Card } from '../../ui/card.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { BatchProgress, polledBatchQuery } from './batch-progress.tsx'
import { BatchResults } from './batch-results.tsx'
import { BatchScript } from './batch-script.tsx'
import { submitterText } from './job-details.tsx'

type Batch = Schemas['Batch']

/** The common result of the batches that one submission created. */
export function BatchGroup({ batchIds }: { batchIds: readonly string[] }) {
  const results = useQueries({ queries: batchIds.map((id) => polledBatchQuery(id, 5)) })
  const batches = results.flatMap(({ data }) => data ?? [])
  const failedQuery = results.find(({ error }) => error !== null)
  const finishedCount = batches.filter(({ status }) => status === 'Finished').length
  const isFinished = finishedCount === batchIds.length
  const status = isFinished ? 'Finished' : 'Running'
  const countText = `${batchIds.length} batches`
  const [firstBatch] = batches
  return (
    <Page
      title={firstBatch?.title ?? countText}
      tabTitle={firstBatch && `${firstBatch.title} (${countText}, ${status})`}
      lead={firstBatch && `${countText}, submitted by ${submitterText(firstBatch.createdBy)}`}
      badge={<Badge variant={isFinished ? 'quiet' : 'busy'}>{status}</Badge>}
      parent={{ label: 'Jobs', to: '/jobs' }}
    >
      {failedQuery !== undefined && <ErrorNote error={failedQuery.error} onRetry={() => void failedQuery.refetch()} />}
      <BatchResults batchIds={batchIds} />
      <Card title="Progress">
        <BatchProgress counts={sumOf(batches)} />
      </Card>
      <BatchScript batchId={batchIds[0] ?? ''} />
      <Card title="Batches">
        <Table label="Batches" columns={columns} rows={batches} keyOf={({ id }) => id} />
      </Card>
    </Page>
  )
}

const columns = [
  {
    title: 'Batch',
    cell: ({ id, submittedCount }: Batch) => (
      <Link to="/jobs/batches/$batchId" params={{ batchId: id }}>
        {submittedCount} jobs <span className="visually-hidden">{id}</span>
      </Link>
    ),
  },
  { title: 'Status', cell: ({ status }: Batch) => status },
  { title: 'Completed', isEnd: true, cell: ({ counts }: Batch) => counts.completed },
  { title: 'Failed', isEnd: true, cell: ({ counts }: Batch) => counts.failed },
]

const noJobs = { queued: 0, running: 0, completed: 0, failed: 0, cancelled: 0 }

const sumOf = (batches: readonly Batch[]) =>
  batches.reduce(
    (sum, { counts }) => ({
      queued: sum.queued + counts.queued,
      running: sum.running + counts.running,
      completed: sum.completed + counts.completed,
      failed: sum.failed + counts.failed,
      cancelled: sum.cancelled + counts.cancelled,
    }),
    noJobs,
  )
