import { useRef, useState } from 'react'
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

/** Changes labels of many clusters, in parts of 500. After a failure, the next attempt continues with the rest. */
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
  const finished = useRef({ change: '', ids: new Set<string>(), changed: 0 })
  const save = async () => {
    const change = edit.complete()
    if (Object.keys(change).length === 0) throw new ApiError(400, { error: 'incomplete', message: 'Enter a label.' })
    const text = JSON.stringify(change)
    if (finished.current.change !== text) finished.current = { change: text, ids: new Set(), changed: 0 }
    const { ids } = finished.current
    const all = await idsOf(target)
    try {
      for (const clusterIds of partsOf(all.filter((id) => !ids.has(id)))) {
        setProgress({ done: ids.size, total: all.length })
        const { changedCount } = await unwrap(
          api.POST('/api/v1/clusters/labels', { body: requestOf(clusterIds, change) }),
        )
        finished.current.changed += changedCount
        for (const id of clusterIds) ids.add(id)
      }
    } finally {
      refreshLabels()
    }
    const changed = clusterCountText(finished.current.changed)
    showToast('Labels changed', `${changed} of ${all.length.toLocaleString()} changed.`)
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
