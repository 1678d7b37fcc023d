import { type ReactNode, useState } from 'react'
import { incompleteError } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { LabelChangeFields, labelsSetBy, useLabelChange } from './label-change.tsx'
import { idsOf, partsOf, type ReviewedTarget, type Target } from './label-queries.ts'
import { refreshLabels } from './labels.tsx'
import { Review } from './review.tsx'
import { clusterCountText } from './selector-completions.ts'
import { noSite, SiteField } from './sites.tsx'

interface BulkProps {
  target: Target
  onClose: () => void
}

export function BulkLabels(props: BulkProps) {
  const edit = useLabelChange()
  const start = () => {
    const change = edit.complete()
    if (Object.keys(change).length === 0) throw incompleteError('Enter a label.')
    const removedKeys = Object.keys(change).filter((key) => change[key] === null)
    const body = { set: labelsSetBy(change), remove: removedKeys }
    return {
      key: JSON.stringify(change),
      send: (target: Target) => unwrap(api.POST('/api/v1/clusters/labels', { body: { target, ...body } })),
    }
  }
  return (
    <BulkForm {...props} title="Change labels" verb="Change" doneText="Labels changed" start={start}>
      <LabelChangeFields edit={edit} />
    </BulkForm>
  )
}

export function BulkMove(props: BulkProps) {
  const [siteId, setSiteId] = useDraft('site', '')
  const start = () => {
    if (siteId === '') throw incompleteError('Choose a site, or “No site”.')
    const body = { siteId: siteId === noSite ? null : siteId }
    return {
      key: siteId,
      send: (target: Target) => unwrap(api.POST('/api/v1/clusters/site', { body: { target, ...body } })),
    }
  }
  return (
    <BulkForm {...props} title="Move to a site" verb="Move" doneText="Clusters moved" start={start}>
      <SiteField value={siteId} onChange={setSiteId} mustChoose />
    </BulkForm>
  )
}

interface BulkFormProps extends BulkProps {
  title: string
  verb: string
  doneText: string
  children: ReactNode
  /** Returns the change. Its `key` is the same for equal input. Throws `ApiError` if the input is incomplete. */
  start: () => BulkChange
}

interface BulkChange {
  key: string
  send: (target: Target) => Promise<Schemas['BulkChangeResult']>
}

/** Sends a change in parts of at most 500 clusters. After a failure, the next attempt continues with the rest. */
function BulkForm({ target, onClose, title, verb, doneText, children, start }: BulkFormProps) {
  const [reviewedChange, setReviewedChange] = useState<BulkChange>()
  const [rest, setRest] = useState<{ key: string; clusterIds: string[]; failure: unknown }>()
  const [progress, setProgress] = useState<{ done: number; total: number }>()
  const save = async ({ key, send }: BulkChange, checkedTarget: ReviewedTarget) => {
    const allIds = await idsOf(checkedTarget)
    let changedCount = 0
    let doneCount = 0
    setRest((before) => before && { ...before, failure: undefined })
    try {
      for (const clusterIds of partsOf(allIds)) {
        setProgress({ done: doneCount, total: allIds.length })
        changedCount += (await send({ clusterIds })).changedCount
        doneCount += clusterIds.length
      }
    } catch (error) {
      if (doneCount > 0) setRest({ key, clusterIds: allIds.slice(doneCount), failure: error })
      throw error
    } finally {
      refreshLabels()
    }
    showToast(doneText, `${clusterCountText(changedCount)} of ${allIds.length.toLocaleString('en')} changed.`)
    onClose()
  }
  const remainingPart = rest !== undefined && rest.key === reviewedChange?.key ? rest : undefined
  return (
    <Dialog isOpen onClose={onClose} title={title}>
      {reviewedChange !== undefined && (
        <Review
          target={remainingPart === undefined ? target : { clusterIds: remainingPart.clusterIds }}
          verb={verb}
          awayNote="The change also applies at once to clusters that are not online."
          onClose={() => setReviewedChange(undefined)}
          onConfirm={(checkedTarget) => save(reviewedChange, checkedTarget)}
        >
          {progress !== undefined && (
            <progress aria-label="Changed clusters" value={progress.done} max={progress.total}>
              {progress.done} of {progress.total}
            </progress>
          )}
          {remainingPart?.failure !== undefined && <ErrorNote error={remainingPart.failure} />}
        </Review>
      )}
      <Form
        name={title}
        submitLabel="Review"
        onSubmit={async () => {
          setReviewedChange(start())
          return false
        }}
        actions={<CancelButton />}
      >
        {children}
      </Form>
    </Dialog>
  )
}
