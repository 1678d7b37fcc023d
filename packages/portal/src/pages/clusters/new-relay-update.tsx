import { useQueryClient } from '@tanstack/react-query'
import { incomplete } from '../../api/api-error.ts'
import { api, unwrap } from '../../api/client.ts'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { TextField } from '../../ui/field.tsx'
import { Form, type FormValues } from '../../ui/form.tsx'
import { useResolved } from './label-queries.ts'
import { relayUpdatesKey } from './relay-update-dialog.tsx'
import { selectorError, SelectorField } from './selector-field.tsx'

interface NewRelayUpdateProps {
  selector: string | undefined
  onStarted: (id: string) => void
  onClose: () => void
}

export const NewRelayUpdate = ({ selector, onStarted, onClose }: NewRelayUpdateProps) => (
  <Dialog isOpen onClose={onClose} title="Update relays">
    <UpdateForm initial={selector ?? ''} onStarted={onStarted} />
  </Dialog>
)

function UpdateForm({ initial, onStarted }: { initial: string; onStarted: (id: string) => void }) {
  const queries = useQueryClient()
  const [draft, setSelector] = useDraft('selector', initial)
  const selector = draft.trim()
  const isValid = selector !== '' && selectorError(selector) === undefined
  const { data } = useResolved(isValid ? { selector } : undefined)
  const start = async ({ canary, maxConcurrent }: FormValues) => {
    if (selector === '') throw incomplete('Enter a label selector.')
    if (data === undefined)
      throw incomplete('The clusters are still being counted. Try again when their number is shown.')
    // The update starts only with the number of clusters that the form shows.
    const expected = { expectedCount: data.resolvedCount }
    const limits = { canary: Number(canary), maxConcurrent: Number(maxConcurrent) }
    const { id } = await unwrap(api.POST('/api/v1/relay-updates', { body: { selector, ...expected, ...limits } }))
    await queries.invalidateQueries({ queryKey: relayUpdatesKey })
    onStarted(id)
  }
  return (
    <Form submitLabel="Start update" onSubmit={start} actions={<CancelButton />}>
      <SelectorField value={draft} onChange={setSelector} isCounted hint="Begin with a few clusters." />
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
  )
}
