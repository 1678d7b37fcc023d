import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  listDeliveries,
  listWebhooks,
  redeliver,
  rotateWebhookSecret,
  testWebhook,
} from '@platform/contract/webhook'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import * as Webhook from '@platform/core/webhooks/webhook'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listWebhooks, async ({ caller }) => result(200, await Webhook.list(caller))),
  route(createWebhook, async ({ caller, body }) => result(201, await Webhook.create(caller, body))),
  route(changeWebhook, async ({ caller, params, body }) => result(200, await Webhook.change(caller, params.id, body))),
  route(rotateWebhookSecret, async ({ caller, params }) => result(200, await Webhook.rotateSecret(caller, params.id))),
  route(deleteWebhook, async ({ caller, params }) => {
    await Webhook.remove(caller, params.id)
    return result(204)
  }),
  route(testWebhook, async ({ caller, params }) => result(202, await Delivery.test(caller, params.id))),
  route(listDeliveries, async ({ caller, params, query }) =>
    result(200, await Delivery.list(caller, params.id, query)),
  ),
  route(redeliver, async ({ caller, params }) =>
    result(202, await Delivery.redeliver(caller, params.id, params.deliveryId)),
  ),
)
