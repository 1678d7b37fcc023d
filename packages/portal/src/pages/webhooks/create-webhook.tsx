import { useState } from 'react'
import { api, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { NewSecret } from '../../ui/copy.tsx'
import { CancelButton, Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { Form } from '../../ui/form.tsx'
import { webhooksKey } from './deliveries.tsx'
import { AddressField, ClusterSelector, EventChoice, eventsProblem, subscriptionsOf } from './webhook-fields.tsx'
import styles from './webhooks.module.css'

/** Adds a webhook and shows its secret, which the platform returns only once. */
export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const [secret, setSecret] = useState<string>()
  return (
    <Dialog isOpen onClose={onClose} title={secret === undefined ? 'Add a webhook' : 'Webhook added'}>
      {secret === undefined ? (
        <WebhookForm onCreated={setSecret} />
      ) : (
        <div className={styles['stack']}>
          <NewSecret
            advice="Use this secret to verify deliveries. It is not shown again."
            label="Secret"
            text={secret}
            onDone={onClose}
          />
        </div>
      )}
    </Dialog>
  )
}

function WebhookForm({ onCreated }: { onCreated: (secret: string) => void }) {
  const [events, setEvents] = useDraft<string[]>('events', [])
  const [selector, setSelector] = useDraft('selector', '')
  const [wasSubmitted, setWasSubmitted] = useState(false)
  const create = async (url: string) => {
    setWasSubmitted(true)
    if (events.length === 0) return false
    const text = selector.trim()
    const body = { url, events: subscriptionsOf(events), ...(text !== '' && { selector: text }) }
    const createdWebhook = await unwrap(api.POST('/api/v1/webhooks', { body }))
    onCreated(createdWebhook.secret)
    await queries.invalidateQueries({ queryKey: webhooksKey })
    return true
  }
  return (
    <Form submitLabel="Add webhook" actions={<CancelButton />} onSubmit={({ url = '' }) => create(url.trim())}>
      <AddressField />
      <EventChoice chosen={events} onChange={setEvents} problem={wasSubmitted ? eventsProblem(events) : undefined} />
      <ClusterSelector selector={selector} onChange={setSelector} />
    </Form>
  )
}
