import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import type { ReviewedTarget, Target } from './label-queries.ts'
import { relayUpdatesKey } from './relay-update-dialog.tsx'
import { Review } from './review.tsx'
import { clusterCountText } from './selector-completions.ts'
import { completeTarget, noTarget, type TargetInput, useTarget } from './target.ts'
import { TargetPicker } from './target-picker.tsx'

interface NewRelayUpdateProps {
  selector: string | undefined
  onStarted: (id: string) => void
  onClose: () => void
}

export const NewRelayUpdate = ({ selector = '', onStarted, onClose }: NewRelayUpdateProps) => (
  <Dialog isOpen onClose={onClose} title="Update relays" description="Begin with a few clusters.">
    <UpdateForm initial={{ ...noTarget, kind: 'selector', selector }} onStarted={onStarted} />
  </Dialog>
)

interface UpdateFormProps {
  initial: TargetInput
  onStarted: (id: string) => void
}

function UpdateForm({ initial, onStarted }: UpdateFormProps) {
  const queries = useQueryClient()
  const [input, setInput] = useDraft('target', initial)
  const { resolved, count } = useTarget(input)
  const [reviewed, setReviewed] = useState<{ target: Target; values: FormValues }>()
  const review = async (values: FormValues) => {
    setReviewed({ target: completeTarget(input, count).target, values })
    return false
  }
  const start = async ({ target, count: expectedCount }: ReviewedTarget, { canary, maxConcurrent }: FormValues) => {
    const body = { target, expectedCount, canary: Number(canary), maxConcurrent: Number(maxConcurrent) }
    const { id } = await unwrap(api.POST('/api/v1/relay-updates', { body }))
    await queries.invalidateQueries({ queryKey: relayUpdatesKey })
    onStarted(id)
  }
  return (
    <>
      {reviewed !== undefined && (
        <Review
          target={reviewed.target}
          verb="Update relays of"
          awayNote="The update waits for relays that are not online, and ends after they have connected."
          onClose={() => setReviewed(undefined)}
          onConfirm={(checkedTarget) => start(checkedTarget, reviewed.values)}
        />
      )}
      <Form
        name="Start update"
        submitLabel={count === undefined ? 'Review' : `Review ${clusterCountText(count)}`}
        onSubmit={review}
        actions={<CancelButton />}
      >
        <TargetPicker input={input} onChange={setInput} resolved={resolved} />
        <TextField
          name="canary"
          label="Canaries"
          hint="Relays that must complete the update before the others start."
          type="number"
          min={1}
          max={100}
          defaultValue="1"
          required
        />
        <TextField
          name="maxConcurrent"
          label="Relays at the same time"
          type="number"
          min={1}
          max={500}
          defaultValue="50"
          required
        />
      </Form>
    </>
  )
}
