import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { isApiError } from '../../api/api-error.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { Form } from '../../ui/form.tsx'
import { Loaded } from '../../ui/state.tsx'
import styles from './clusters.module.css'
import { refreshTargets, type ReviewedTarget, reviewQuery, type Target, targetChangedError } from './label-queries.ts'
import { clusterCountText } from './selector-completions.ts'
import { matchText } from './selector-field.tsx'

interface ReviewProps {
  target: Target
  /** The action, to which the number of clusters is appended, such as `Run on`. */
  verb: string
  /** How the action affects clusters that are not online. */
  awayNote: string
  onClose: () => void
  onConfirm: (reviewed: ReviewedTarget) => Promise<unknown>
  /** The progress, once the action has started. */
  children?: ReactNode
}

/** Shows which clusters an action will affect, before it starts. */
export function Review({ target, verb, awayNote, onClose, onConfirm, children }: ReviewProps) {
  const query = useQuery(reviewQuery(target))
  const confirm = async (reviewed: ReviewedTarget) => {
    try {
      await onConfirm(reviewed)
    } catch (error) {
      if (isApiError(error, 'target_changed')) throw targetChangedError(error.body['resolvedCount'], reviewed.count)
      // A cluster of the target was removed, so the clusters are counted again.
      if (isApiError(error, 'cluster_forbidden')) refreshTargets()
      throw error
    }
  }
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title="Review"
      description={children ? undefined : 'Nothing has started yet.'}
      hasDraft={false}
    >
      {children}
      <Loaded query={query} what="the clusters">
        {(reviewed) =>
          reviewed.count === 0 ? (
            <AffectedClusters reviewed={reviewed} awayNote={awayNote} />
          ) : (
            <Form
              submitLabel={`${verb} ${clusterCountText(reviewed.count)}`}
              hasDraft={false}
              actions={<CancelButton />}
              onSubmit={() => confirm(reviewed)}
            >
              <AffectedClusters reviewed={reviewed} awayNote={awayNote} />
            </Form>
          )
        }
      </Loaded>
    </Dialog>
  )
}

interface AffectedProps {
  reviewed: ReviewedTarget
  awayNote: string
}

function AffectedClusters({ reviewed: { count, names, byStatus, removedCount }, awayNote }: AffectedProps) {
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
      {isAnyAway && <p className={styles['quiet']}>{awayNote}</p>}
      {removedCount > 0 && (
        <p role="status">{clusterCountText(removedCount)} removed since you selected the clusters.</p>
      )}
    </>
  )
}
