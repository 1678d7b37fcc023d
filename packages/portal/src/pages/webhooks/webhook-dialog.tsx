import { KeyRound, Send, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, expectNoBody, type Schemas, unwrap } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { useDraft } from '../../ui/draft.ts'
import { CheckField } from '../../ui/field.tsx'
import { Form } from '../../ui/form.tsx'
import { Time } from '../../ui/time.tsx'
import { showErrorToast, showToast } from '../../ui/toast.tsx'
import { Deliveries, webhooksKey } from './deliveries.tsx'
import { AddressField, ClusterSelector, EventChoice, eventsProblem, subscriptionsOf } from './webhook-fields.tsx'
import styles from './webhooks.module.css'

type Webhook = Schemas['Webhook']

export const WebhookDialog = ({ webhook, onClose }: { webhook: Webhook | undefined; onClose: () => void }) => (
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
  // The values when the form was opened or saved. Later changes by other users do not count as edits of this form.
  const [before, setBefore] = useState(webhook)
  const [events, setEvents] = useDraft('events', before.events)
  const [selector, setSelector] = useDraft('selector', before.selector ?? '')
  // Undefined until the user changes it, because the platform may disable the webhook while the form is open.
  const [chosenEnabled, setChosenEnabled] = useDraft<boolean | undefined>('enabled', undefined)
  const [isRemoving, setIsRemoving] = useState(false)
  const [isRotating, setIsRotating] = useState(false)
  const [secret, setSecret] = useState<string>()
  const [isTesting, setIsTesting] = useState(false)
  const [wasSubmitted, setWasSubmitted] = useState(false)
  const change = async (url: string) => {
    setWasSubmitted(true)
    if (events.length === 0) return false
    const text = selector.trim()
    const body = {
      ...(url !== before.url && { url }),
      ...(events.toSorted().join() !== before.events.toSorted().join() && { events: subscriptionsOf(events) }),
      ...(text !== (before.selector ?? '') && { selector: text || null }),
      ...(chosenEnabled !== undefined && chosenEnabled !== webhook.enabled && { enabled: chosenEnabled }),
    }
    if (Object.keys(body).length === 0) {
      showToast('No changes to save')
      return true
    }
    setBefore(await unwrap(api.PATCH('/api/v1/webhooks/{id}', { params, body })))
    await queries.invalidateQueries({ queryKey: webhooksKey })
    setChosenEnabled(undefined)
    showToast('Webhook updated')
    return true
  }
  const remove = async () => {
    await expectNoBody(api.DELETE('/api/v1/webhooks/{id}', { params }))
    showToast('Webhook removed')
    onClose()
    // The deliveries of the removed webhook must not be fetched again.
    await queries.invalidateQueries({ queryKey: webhooksKey, exact: true })
  }
  const rotate = async () => {
    const rotatedWebhook = await unwrap(api.POST('/api/v1/webhooks/{id}/rotate-secret', { params }))
    setSecret(rotatedWebhook.secret)
    await queries.invalidateQueries({ queryKey: webhooksKey, exact: true })
  }
  const test = async () => {
    setIsTesting(true)
    try {
      await unwrap(api.POST('/api/v1/webhooks/{id}/test', { params }))
      showToast('Test event sent')
      await queries.invalidateQueries({ queryKey: [...webhooksKey, webhook.id] })
    } catch (error) {
      showErrorToast('Failed to send the test event', error)
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
        <Button icon={KeyRound} onClick={() => setIsRotating(true)}>
          Rotate secret
        </Button>
        <Button icon={Trash2} onClick={() => setIsRemoving(true)}>
          Remove webhook
        </Button>
      </div>
      <p className={styles['state']}>
        <WebhookState webhook={webhook} />{' '}
        {webhook.disabledAt !== undefined && <DisabledReason at={webhook.disabledAt} />}
        {webhook.previousSecretExpiresAt !== undefined && (
          <span>
            Deliveries are also signed with the previous secret (until <Time at={webhook.previousSecretExpiresAt} />
            ).
          </span>
        )}
      </p>
      {secret !== undefined && (
        <div className={styles['stack']}>
          <p>Store the new secret at the receiver. It is not shown again.</p>
          <CopyField label="Secret" text={secret} />
        </div>
      )}
      <Form submitLabel="Save changes" onSubmit={({ url = '' }) => change(url.trim())}>
        <AddressField url={before.url} />
        <CheckField
          label="Enabled"
          hint="Events are posted to this address."
          checked={chosenEnabled ?? webhook.enabled}
          onChange={setChosenEnabled}
        />
        <EventChoice chosen={events} onChange={setEvents} problem={wasSubmitted ? eventsProblem(events) : undefined} />
        <ClusterSelector selector={selector} onChange={setSelector} />
      </Form>
      <Deliveries webhookId={webhook.id} />
      <Confirm
        isOpen={isRotating}
        onClose={() => setIsRotating(false)}
        title="Rotate the secret?"
        description="For 24 hours, deliveries are signed with the new and the previous secret."
        confirmLabel="Rotate secret"
        variant="primary"
        onConfirm={rotate}
      />
      <Confirm
        isOpen={isRemoving}
        onClose={() => setIsRemoving(false)}
        title="Remove this webhook?"
        description="Pending deliveries are discarded."
        confirmLabel="Remove webhook"
        onConfirm={remove}
      />
    </div>
  )
}

const DisabledReason = ({ at }: { at: string }) => (
  <span>
    Disabled by the platform (<Time at={at} />
    ): 20 consecutive attempts failed, or the receiver returned 410 Gone. Enable it again once it responds.
  </span>
)

export function WebhookState({ webhook: { enabled, disabledAt, failureCount } }: { webhook: Webhook }) {
  if (disabledAt !== undefined) return <Badge variant="bad">Disabled after repeated failures</Badge>
  if (!enabled) return <Badge>Disabled</Badge>
  if (failureCount === 0) return <Badge variant="good">Enabled</Badge>
  return <Badge variant="warn">{failureCount === 1 ? '1 failure' : `${failureCount} consecutive failures`}</Badge>
}
