import { queryOptions } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { Badge, variantOf } from '../../ui/badge.tsx'
import styles from './jobs.module.css'
import { isFinished } from './status.ts'

export const batchQuery = (batchId: string) =>
  queryOptions({
    queryKey: ['batches', 'one', batchId],
    queryFn: () => unwrap(api.GET('/api/v1/jobs/batch/{batchId}', { params: { path: { batchId } } })),
  })

/** Returns the query of a batch, which polls until the batch has finished. */
export const polledBatchQuery = (batchId: string, seconds: number) =>
  queryOptions({
    ...batchQuery(batchId),
    refetchInterval: (query) => (query.state.data?.status === 'Finished' ? false : pollEvery(seconds)(query)),
  })

export function BatchProgress({ counts }: { counts: Schemas['BatchCounts'] }) {
  const parts = [
    { status: 'Completed', count: counts.completed },
    { status: 'Failed', count: counts.failed },
    { status: 'Cancelled', count: counts.cancelled },
    { status: 'Running', count: counts.running },
    { status: 'Queued', count: counts.queued },
  ] as const
  const presentParts = parts.filter(({ count }) => count > 0)
  const total = sum(presentParts)
  const finishedParts = presentParts.filter(({ status }) => isFinished(status))
  const finishedCount = sum(finishedParts)
  return (
    <>
      <div
        className={styles['bar']}
        role="progressbar"
        aria-label="Finished jobs"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={finishedCount}
      >
        {finishedParts.map(({ status, count }) => (
          <span key={status} data-variant={variantOf(status)} style={{ flexGrow: count }} />
        ))}
        <span style={{ flexGrow: total - finishedCount }} />
      </div>
      <ul className={styles['counts']} aria-label="Jobs by status">
        {presentParts.map(({ status, count }) => (
          <li key={status}>
            <Badge variant={variantOf(status)}>
              {count} {status}
            </Badge>
          </li>
        ))}
      </ul>
    </>
  )
}

const sum = (parts: readonly { count: number }[]): number => parts.reduce((total, { count }) => total + count, 0)
