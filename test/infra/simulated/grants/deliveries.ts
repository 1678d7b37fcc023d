import { expectStatus } from '../../../conformance/support/answer.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import { came, newestDelivery, webhooksPath } from '../../../conformance/support/webhooks.ts'
import { own } from './act.ts'
import { withReceiver } from './conformance.ts'
import { swept, sweeps } from './sweep.ts'
import { without } from './withholding.ts'

/** Deliveries to receivers of webhooks that do not answer as they should, or are not heard of. */

export const sweepWebhooks = own(
  'the sweep announces a delivery whose message was lost, and it is made',
  withReceiver(async ({ admin, receiver, newWebhook }, scene) => {
    const { id } = await newWebhook('/swept', ['platform.setup.*'])
    await without(scene, ['webhooks', 'queue:webhooks'], async () =>
      expectStatus(await admin.post(`${webhooksPath}/${id}/test`), 202),
    )
    await swept(scene, 'it is delivered', async () => receiver.received.length > 0)
  }),
  { breaks: ['webhooks', ...sweeps] },
)

export const deliveryComesAgain = own(
  'a delivery that fails is made again after about ten seconds',
  withReceiver(async ({ admin, receiver, newWebhook }) => {
    receiver.answerWith(500)
    const { id } = await newWebhook('/again', ['platform.setup.*'])
    expectStatus(await admin.post(`${webhooksPath}/${id}/test`), 202)
    await newestDelivery(admin, id, ({ attempts }) => attempts.length > 0)
    receiver.answerWith(204)
    await came(receiver, '/again', 2)
  }),
  { touches: ['auth', 'audit', 'webhooks', 'queue/webhooks', 'queue/events'] },
)

export const goneReceiver = own(
  'a webhook whose receiver is gone is switched off, on record',
  withReceiver(async ({ admin, receiver, newWebhook }) => {
    receiver.answerWith(410)
    const { id } = await newWebhook('/gone', ['platform.setup.*'])
    await entriesOf(admin, `resource=${id}`, 1)
    expectStatus(await admin.post(`${webhooksPath}/${id}/test`), 202)
    await entriesOf(admin, `resource=${id}&action=webhook.disable`, 1)
  }),
)
