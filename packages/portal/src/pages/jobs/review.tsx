import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { Form } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import { type ReviewedTarget, reviewQuery, type Target } from '../clusters/label-queries.ts'
import { clusterCountText } from '../clusters/selector-completions.ts'
import { matchText } from '../clusters/selector-field.tsx'
import styles from './jobs.module.css'

interface ReviewProps {
  target: Target
  onClose: () => void
  onConfirm: (reviewed: ReviewedTarget) => Promise<unknown>
  children?: ReactNode
}

/** Shows on which clusters a script will run, before it starts. */
export function Review({ target, onClose, onConfirm, children }: ReviewProps) {
  const query = useQuery(reviewQuery(target))
  return (
    <Dialog isOpen onClose={onClose} title="Review" description="Nothing has started yet.">
      {children}
      <Loaded query={query} what="the clusters">
        {(reviewed) => (
          <Form
            submitLabel={`Run on ${clusterCountText(reviewed.count)}`}
            hasDraft={false}
            actions={<CancelButton />}
            onSubmit={() => onConfirm(reviewed)}
          >
            <Affected reviewed={reviewed} />
          </Form>
        )}
      </Loaded>
    </Dialog>
  )
}

function Affected({ reviewed: { count, names, byStatus, removedCount } }: { reviewed: ReviewedTarget }) {
  const { Healthy, Degraded, Offline, Pending } = byStatus
  const isAnyAway = Offline + Pending > 0
  return (
    <>
      <p>{matchText({ resolvedCount: count, names })}</p>
      <ul aria-label="Clusters by status" className={styles['counts']}>
        <li>{(Healthy + Degraded).toLocaleString('en')} online</li>
        <li>{Offline.toLocaleString('en')} offline</li>
        <li>{Pending.toLocaleString('en')} never connected</li>
      </ul>
      {isAnyAway && (
        <p className={styles['quiet']}>
          Jobs of clusters that are not online wait for the relay until the delivery timeout.
        </p>
      )}
      {removedCount > 0 && (
        <p role="status">{clusterCountText(removedCount)} removed since you selected the clusters.</p>
      )}
    </>
  )
}
