import * as z from 'zod'
import { id, line, listOf, pageOf, paging, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { eventNames } from './event.ts'

/** Webhooks (D39): events, delivered to addresses of the organisation as Standard Webhooks. */

/** The most webhooks that an organisation may have. */
export const webhookLimit = 50
/** The newest deliveries of a webhook that can be paged through. */
export const shownDeliveries = 1000

const areas = [...new Set(eventNames.map((name) => name.split('.')[0]))]

/** What a webhook may subscribe to: everything, an area, or one event. */
const subscriptions = [
  '*',
  ...areas.map((area) => `platform.${area}.*`),
  'module.*',
  ...eventNames.map((name) => `platform.${name}`),
]

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

const url = line(1, 2000).refine(isHttpUrl, 'must be an http or https address').meta({
  format: 'uri',
  description: 'Where events are posted to. Private addresses are refused unless the operator has allowed them.',
  example: 'https://hooks.example.com/platform',
})
const events = z
  .array(z.enum(subscriptions))
  .min(1)
  .max(50)
  .meta({
    description:
      'CloudEvents types of GET /events/catalog, `platform.<area>.*` for a whole area, `module.*` for what modules publish themselves, or `*` for everything',
    example: ['platform.job.*', 'platform.batch.finished'],
  })
const enabled = z.boolean().meta({ example: true })

export const WebhookCreation = z
  .object({ url, events, enabled: enabled.optional().meta({ description: 'Default true' }) })
  .meta({ id: 'WebhookCreation' })
export const WebhookChange = z
  .object({
    url: url.optional(),
    events: events.optional(),
    enabled: enabled.optional().meta({ description: 'true starts the count of failures anew' }),
  })
  .meta({ id: 'WebhookChange' })

const webhookFields = {
  id: id('hook'),
  url: z.string().max(2000).meta({ example: 'https://hooks.example.com/platform' }),
  events: z
    .array(z.string().max(100))
    .max(50)
    .meta({ example: ['platform.job.*'] }),
  enabled,
  failureCount: z.int32().min(0).meta({ description: 'Failed attempts since the last success', example: 0 }),
  disabledAt: timestamp.optional().meta({
    description: 'When the platform switched it off: after 20 failures in a row, or at an answer 410',
  }),
  createdAt: timestamp,
}

export const Webhook = z.object(webhookFields).meta({ id: 'Webhook' })
export const CreatedWebhook = z
  .object({
    ...webhookFields,
    secret: z.string().max(100).meta({
      description: 'Verifies signatures (Standard Webhooks). Shown here and never again.',
      example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    }),
  })
  .meta({ id: 'CreatedWebhook' })

export const deliveryStatuses = ['Pending', 'Delivered', 'Failed'] as const

/** Why an attempt has failed. */
export const attemptErrors = [
  'url_not_allowed',
  'address_not_allowed',
  'name_not_resolved',
  'certificate_not_trusted',
  'connection_failed',
  'timed_out',
  'redirected',
  'unsuccessful_status',
] as const

const DeliveryAttempt = z
  .object({
    at: timestamp,
    statusCode: z.int32().optional().meta({ description: 'What the receiver answered with, if it did', example: 503 }),
    error: z
      .enum(attemptErrors)
      .optional()
      .meta({ description: 'Absent after a success', example: 'unsuccessful_status' }),
    durationMs: z.int32().min(0).meta({ example: 42 }),
  })
  .meta({ id: 'DeliveryAttempt' })

/** One event on its way to one webhook. It is tried eight times in about a day. */
export const Delivery = z
  .object({
    id: id('dlv'),
    status: z.enum(deliveryStatuses).meta({ example: 'Pending' }),
    eventId: id('evt').meta({ description: 'Also the header webhook-id, the same at every attempt' }),
    eventType: z.string().max(200).meta({ example: 'platform.job.completed' }),
    attempts: z.array(DeliveryAttempt).max(20).meta({ description: 'The last twenty, oldest first' }),
    nextAttemptAt: timestamp.optional().meta({ description: 'Not before then; present while Pending' }),
    createdAt: timestamp,
  })
  .meta({ id: 'Delivery' })

export type WebhookCreation = z.infer<typeof WebhookCreation>
export type WebhookChange = z.infer<typeof WebhookChange>
export type Webhook = z.infer<typeof Webhook>
export type CreatedWebhook = z.infer<typeof CreatedWebhook>
export type Delivery = z.infer<typeof Delivery>
export type AttemptError = (typeof attemptErrors)[number]

// `users:admin` is what OrgAdmin and PlatformAdmin hold, and nobody else (D14): those whom D39 names.
const access = 'users:admin'
const tag = 'Webhooks'
const params = z.object({ id: pathId('hook') })

export const listWebhooks = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks',
  access,
  tag,
  summary: 'The webhooks of the organisation, newest first',
  responses: { 200: { description: 'Webhooks', schema: listOf(Webhook, webhookLimit) } },
  uses: ['table:read'],
})

export const createWebhook = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks',
  access,
  tag,
  summary: 'Subscribe an address to events',
  description: 'At most 50 for an organisation. The secret is in this answer only.',
  request: { body: WebhookCreation },
  responses: { 201: { description: 'The webhook with its secret', schema: CreatedWebhook } },
  fails: ['url_not_allowed', 'limit_reached'],
  uses: ['table:read', 'table:write', 'queue:events', 'secret:signing-keys'],
})

export const changeWebhook = endpoint({
  method: 'PATCH',
  path: '/api/v1/webhooks/{id}',
  access,
  tag,
  summary: 'Change a webhook, or switch it on or off',
  description:
    'Events that happen while it is off are not delivered; those that were waiting go out when it is on again.',
  request: { params, body: WebhookChange },
  responses: { 200: { description: 'The webhook', schema: Webhook } },
  fails: ['webhook_not_found', 'url_not_allowed'],
  uses: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})

export const deleteWebhook = endpoint({
  method: 'DELETE',
  path: '/api/v1/webhooks/{id}',
  access,
  tag,
  summary: 'Remove a webhook; what was waiting for it is not delivered',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  fails: ['webhook_not_found'],
  uses: ['table:write', 'queue:events'],
})

export const testWebhook = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/{id}/test',
  access,
  tag,
  summary: 'Send an event of the type platform.webhook.tested to this webhook alone',
  request: { params },
  responses: { 202: { description: 'On its way; see the deliveries for what became of it', schema: Delivery } },
  fails: ['webhook_not_found', 'webhook_disabled'],
  uses: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})

export const listDeliveries = endpoint({
  method: 'GET',
  path: '/api/v1/webhooks/{id}/deliveries',
  access,
  tag,
  summary: 'The newest thousand deliveries of a webhook of the last 30 days, newest first',
  request: { params, query: z.object(paging) },
  responses: { 200: { description: 'A page of deliveries', schema: pageOf(Delivery) } },
  fails: ['webhook_not_found'],
  uses: ['table:read'],
})

export const redeliver = endpoint({
  method: 'POST',
  path: '/api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver',
  access,
  tag,
  summary: 'Deliver an event of the last 30 days again, whatever became of it',
  request: { params: params.extend({ deliveryId: pathId('dlv') }) },
  responses: { 202: { description: 'On its way once more', schema: Delivery } },
  fails: ['webhook_not_found', 'delivery_not_found', 'webhook_disabled', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})
