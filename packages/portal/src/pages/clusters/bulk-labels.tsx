import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { ApiError } from '../../api/api-error.ts'
import { LabelChangeFields, type LabelChange, setBy, useLabelChange } from './label-change.tsx'
import { idsOf, partsOf, type Target, useResolved } from './label-queries.ts'
import { refreshLabels } from './labels.tsx'
import { matchText } from './selector-field.tsx'
import { clusterCountText } from './selector-completions.ts'

interface BulkLabelsProps {
  target: Target
  onClose: () => void
}

/** Changes labels of many clusters, in parts of 500. A repeated request changes nothing more. */
export const BulkLabels = ({ target, onClose }: BulkLabelsProps) => (
  <Dialog isOpen onClose={onClose} title="Change labels" description={<Affected target={target} />}>
    <BulkForm target={target} onDone={onClose} />
  </Dialog>
)

function Affected({ target }: { target: Target }) {
  const { data } = useResolved(target)
  if (target.clusterIds !== undefined) return clusterCountText(target.clusterIds.length)
  return <span role="status">{data === undefined ? 'Counting clusters …' : matchText(data)}</span>
}

function BulkForm({ target, onDone }: { target: Target; onDone: () => void }) {
  const edit = useLabelChange()
  const [progress, setProgress] = useState<{ done: number; total: number }>()
  const save = async () => {
    const change = edit.complete()
    if (Object.keys(change).length === 0) throw new ApiError(400, { error: 'incomplete', message: 'Enter a label.' })
    const parts = partsOf(await idsOf(target))
    const total = parts.flat().length
    let done = 0
    let changed = 0
    for (const clusterIds of parts) {
      setProgress({ done, total })
      changed += (await unwrap(api.POST('/api/v1/clusters/labels', { body: requestOf(clusterIds, change) })))
        .changedCount
      done += clusterIds.length
    }
    refreshLabels()
    showToast('Labels changed', `${clusterCountText(changed)} of ${total.toLocaleString()} changed.`)
    onDone()
  }
  return (
    <Form submitLabel="Change labels" onSubmit={save} actions={<CancelButton />}>
      <LabelChangeFields edit={edit} />
      {progress !== undefined && (
        <progress aria-label="Changed clusters" value={progress.done} max={progress.total}>
          {progress.done} of {progress.total}
        </progress>
      )}
    </Form>
  )
}

const requestOf = (clusterIds: string[], change: LabelChange) => ({
  target: { clusterIds },
  set: setBy(change),
  remove: Object.keys(change).filter((key) => change[key] === null),
})
