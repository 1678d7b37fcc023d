import { type ReactNode, useRef, useState } from 'react'
import { incomplete } from '../../api/api-error.ts'
import { api, type Schemas, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { Form } from '../../ui/form.tsx'
import { showToast } from '../../ui/toast.tsx'
import { LabelChangeFields, setBy, useLabelChange } from './label-change.tsx'
import { idsOf, partsOf, type Target, useResolved } from './label-queries.ts'
import { refreshLabels } from './labels.tsx'
import { matchText } from './selector-field.tsx'
import { clusterCountText } from './selector-completions.ts'
import { noSite, SiteField } from './sites.tsx'

interface BulkProps {
  target: Target
  onClose: () => void
}

/** Changes labels of many clusters. */
export function BulkLabels(props: BulkProps) {
  const edit = useLabelChange()
  const start = () => {
    const change = edit.complete()
    if (Object.keys(change).length === 0) throw incomplete('Enter a label.')
    const remove = Object.keys(change).filter((key) => change[key] === null)
    const body = { set: setBy(change), remove }
    return {
      key: JSON.stringify(change),
      send: (target: Target) => unwrap(api.POST('/api/v1/clusters/labels', { body: { target, ...body } })),
    }
  }
  return (
    <BulkForm {...props} title="Change labels" verb="Change" done="Labels changed" start={start}>
      <LabelChangeFields edit={edit} />
    </BulkForm>
  )
}

/** Moves many clusters to a site. */
export function BulkMove(props: BulkProps) {
  const [siteId, setSiteId] = useDraft('site', '')
  const start = () => {
    if (siteId === '') throw incomplete('Choose a site, or “No site”.')
    const body = { siteId: siteId === noSite ? null : siteId }
    return {
      key: siteId,
      send: (target: Target) => unwrap(api.POST('/api/v1/clusters/site', { body: { target, ...body } })),
    }
  }
  return (
    <BulkForm {...props} title="Move to a site" verb="Move" done="Clusters moved" start={start}>
      <SiteField value={siteId} onChange={setSiteId} mustChoose />
    </BulkForm>
  )
}

interface BulkFormProps extends BulkProps {
  title: string
  verb: string
  done: string
  children: ReactNode
  /** The key identifies the change. Throws if the input is incomplete. */
  start: () => { key: string; send: (target: Target) => Promise<Schemas['BulkChangeResult']> }
}

/** Sends a change in parts of 500 clusters. After a failure, the next attempt continues with the rest. */
function BulkForm({ target, onClose, title, verb, done, children, start }: BulkFormProps) {
  const { data: resolved } = useResolved(target)
  const count = target.clusterIds?.length ?? resolved?.resolvedCount
  const [progress, setProgress] = useState<{ done: number; total: number }>()
  const finished = useRef({ key: '', ids: new Set<string>(), changed: 0 })
  const save = async () => {
    const { key, send } = start()
    if (finished.current.key !== key) finished.current = { key, ids: new Set(), changed: 0 }
    const { ids } = finished.current
    const all = await idsOf(target)
    try {
      for (const clusterIds of partsOf(all.filter((id) => !ids.has(id)))) {
        setProgress({ done: ids.size, total: all.length })
        const { changedCount } = await send({ clusterIds })
        finished.current.changed += changedCount
        for (const id of clusterIds) ids.add(id)
      }
    } finally {
      refreshLabels()
    }
    const changed = clusterCountText(finished.current.changed)
    showToast(done, `${changed} of ${all.length.toLocaleString('en')} changed.`)
    onClose()
  }
  const description =
    target.clusterIds !== undefined ? clusterCountText(target.clusterIds.length) : resolved && matchText(resolved)
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={title}
      description={<span role="status">{description ?? 'Counting clusters …'}</span>}
    >
      <Form
        name={title}
        submitLabel={count === undefined ? title : `${verb} ${clusterCountText(count)}`}
        onSubmit={save}
        actions={<CancelButton />}
      >
        {children}
        {progress !== undefined && (
          <progress aria-label="Changed clusters" value={progress.done} max={progress.total}>
            {progress.done} of {progress.total}
          </progress>
        )}
      </Form>
    </Dialog>
  )
}
