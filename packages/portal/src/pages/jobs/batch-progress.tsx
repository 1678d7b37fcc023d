import type { Schemas } from '../../api/client.ts'
import { Badge, variantOf } from '../../ui/badge.tsx'
import styles from './jobs.module.css'
import { isOver } from './status.ts'

/** Progress as numbers and as a bar. */
export function BatchProgress({ counts }: { counts: Schemas['BatchCounts'] }) {
  const parts = [
    { status: 'Completed', count: counts.completed },
    { status: 'Failed', count: counts.failed },
    { status: 'Cancelled', count: counts.cancelled },
    { status: 'Running', count: counts.running },
    { status: 'Queued', count: counts.queued },
  ] as const
  const there = parts.filter(({ count }) => count > 0)
  const total = sum(there)
  const over = there.filter(({ status }) => isOver(status))
  const ended = sum(over)
  return (
    <>
      <div
        className={styles['bar']}
        role="progressbar"
        aria-label="Finished jobs"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={ended}
      >
        {over.map(({ status, count }) => (
          <span key={status} data-tone={variantOf(status)} style={{ flexGrow: count }} />
        ))}
        <span style={{ flexGrow: total - ended }} />
      </div>
      <ul className={styles['counts']} aria-label="Jobs by status">
        {there.map(({ status, count }) => (
          <li key={status}>
            <Badge tone={variantOf(status)}>
              {count} {status}
            </Badge>
          </li>
        ))}
      </ul>
    </>
  )
}

const sum = (parts: readonly { count: number }[]): number => parts.reduce((total, { count }) => total + count, 0)
