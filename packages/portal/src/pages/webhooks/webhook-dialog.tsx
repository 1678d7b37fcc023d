import { Send, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, unwrap, type Schemas, expectNoBody } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { CheckField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Time } from '../../ui/time.tsx'
import { showToast, showErrorToast } from '../../ui/toast.tsx'
import { AddressField } from './address-field.tsx'
import { Deliveries } from './deliveries.tsx'
import { EventChoice, noEvents, subscriptionsOf } from './event-choice.tsx'
import { WebhookState } from './webhook-state.tsx'
import styles from './webhooks.module.css'
import { webhooksKey } from './webhooks-key.ts'

type Webhook = Schemas['Webhook']

interface WebhookDialogProps {
  webhook: Webhook | undefined
  onClose: () => void
}

/** One webhook: what it hears of, and what became of its deliveries. */
export const WebhookDialog = ({ webhook, onClose }: WebhookDialogProps) => (
  <Dialog
    isOpen={webhook !== undefined}
    onClose={onClose}
    title={webhook ? `Webhook at ${hostOf(webhook.url)}` : 'Webhook'}
    isWide
  >
    {webhook !== undefined && <WebhookView key={webhook.id} webhook={webhook} onClose={onClose} />}
  </Dialog>
)

const hostOf = (url: string): string => URL.parse(url)?.host ?? url

function WebhookView({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const params = { path: { id: webhook.id } }
  // As it was when the form was opened, or saved: what others change meanwhile is not what was edited here.
  const [before, setBefore] = useState(webhook)
  const [events, setEvents] = useState(before.events)
  // Shown as it is until somebody chooses: the platform may switch it off meanwhile.
  const [chosen, setChosen] = useState<boolean>()
  const [isRemoving, setIsRemoving] = useState(false)
  const [isTesting, setIsTesting] = useState(false)
  const [isTried, setIsTried] = useState(false)
  const change = async (url: string) => {
    setIsTried(true)
    if (events.length === 0) return
    const body = {
      ...(url !== before.url && { url }),
      ...(events.toSorted().join() !== before.events.toSorted().join() && { events: subscriptionsOf(events) }),
      ...(chosen !== undefined && chosen !== webhook.enabled && { enabled: chosen }),
    }
    if (Object.keys(body).length === 0) return showToast('There was nothing to change')
    setBefore(await unwrap(api.PATCH('/api/v1/webhooks/{id}', { params, body })))
    await queries.invalidateQueries({ queryKey: webhooksKey })
    setChosen(undefined)
    showToast('The webhook was changed')
  }
  const remove = async () => {
    await expectNoBody(api.DELETE('/api/v1/webhooks/{id}', { params }))
    showToast('The webhook was removed')
    onClose()
    // Of its deliveries there is nothing to ask any more.
    await queries.invalidateQueries({ queryKey: webhooksKey, exact: true })
  }
  const test = async () => {
    setIsTesting(true)
    try {
      await unwrap(api.POST('/api/v1/webhooks/{id}/test', { params }))
      showToast('A test event is on its way')
      await queries.invalidateQueries({ queryKey: [...webhooksKey, webhook.id] })
    } catch (error) {
      showErrorToast('No test event was sent', error)
    } finally {
      setIsTesting(false)
    }
  }
  return (
    <div className={styles['stack']}>
      <div className={styles['actions']}>
        <Button icon={Send} isBusy={isTesting} onClick={() => void test()}>
          Send test event
        </Button>
        <Button icon={Trash2} onClick={() => setIsRemoving(true)}>
          Remove webhook
        </Button>
      </div>
      <p className={styles['state']}>
        <WebhookState webhook={webhook} /> {webhook.disabledAt !== undefined && <WhyOff at={webhook.disabledAt} />}
      </p>
      <Form submitLabel="Save changes" onSubmit={({ url = '' }) => change(url.trim())}>
        <AddressField url={before.url} />
        <CheckField
          label="On"
          hint="Events are posted there."
          checked={chosen ?? webhook.enabled}
          onChange={setChosen}
        />
        <EventChoice chosen={events} onChange={setEvents} problem={isTried ? noEvents(events) : undefined} />
      </Form>
      <Deliveries webhookId={webhook.id} />
      <Confirm
        isOpen={isRemoving}
        onClose={() => setIsRemoving(false)}
        title="Remove this webhook?"
        description="What waits for it is not delivered."
        confirmLabel="Remove webhook"
        onConfirm={remove}
      />
    </div>
  )
}

const WhyOff = ({ at }: { at: string }) => (
  <span>
    The platform switched it off (<Time at={at} />
    ): twenty attempts in a row have failed, or its receiver has answered that it is gone. Save it with “On” once it
    answers again.
  </span>
)
