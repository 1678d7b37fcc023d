import * as z from 'zod'
import { id, line, listOf, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { eventNames } from './event.ts'
import { SelectorText } from './label.ts'

/** Maximum number of webhooks of an organisation. */
export const webhookLimit = 50
/** Maximum number of deliveries of a webhook that can be listed: the newest ones. */
export const deliveryListLimit = 1000

const areas = [...new Set(eventNames.map((name) => name.split('.')[0]))]

// A subscription covers all events (`*`), an area of events, or one event.
const subscriptions = [
  '*',
  ...areas.map((area) => `platform.${area}.*`),
  'module.*',
  ...eventNames.map((name) => `platform.${name}`),
]

const isHttpUrl = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

const url = line(1, 2000).refine(isHttpUrl, 'must be an http or https address').meta({
  format: 'uri',
  description:
    'Address that receives the events by POST. Private addresses are rejected unless the operator has allowed them.',
  example: 'https://hooks.example.com/platform',
})
const events = z
  .array(z.enum(subscriptions))
  .min(1)
  .max(50)
  .meta({
    description:
      'CloudEvents types of GET /events/catalog, `platform.<area>.*` for an area, `module.*` for events that modules publish, or `*` for all events',
    example: ['platform.job.*', 'platform.batch.finished'],
  })
const selectorRule =
  'Only events about a cluster that matches this label selector when the event is processed. Events without a cluster are not delivered'
const enabledSchema = z.boolean().meta({ example: true })

export const WebhookCreation = z
  .strictObject({
    url,
    events,
    selector: SelectorText.optional().meta({ description: selectorRule }),
    enabled: enabledSchema.optional().meta({ description: 'Default true' }),
  })
  .meta({ id: 'WebhookCreation' })
export const WebhookChange = z
  .strictObject({
    url: url.optional(),
    events: events.optional(),
    selector: SelectorText.nullable()
      .optional()
      .meta({ description: `${selectorRule}. null removes it` }),
    enabled: enabledSchema.optional().meta({ description: 'true resets the failure count' }),
  })
  .meta({ id: 'WebhookChange' })

const webhookFields = {
  id: id('hook'),
  url: z.string().max(2000).meta({ example: 'https://hooks.example.com/platform' }),
  events: z
    .array(z.string().max(100))
    .max(50)
    .meta({ example: ['platform.job.*'] }),
  selector: z.string().max(1000).optional().meta({ description: selectorRule, example: 'env=prod' }),
  enabled: enabledSchema,
  failureCount: z.int32().min(0).meta({ description: 'Failed attempts since the last success', example: 0 }),
  disabledAt: timestamp.optional().meta({
    description: 'Time at which the platform disabled it: after 20 consecutive failures, or a 410 response',
  }),
  previousSecretExpiresAt: timestamp.optional().meta({
    description: 'Deliveries are also signed with the previous secret until this time',
  }),
  createdAt: timestamp,
}

export const Webhook = z.object(webhookFields).meta({ id: 'Webhook' })
export const CreatedWebhook = z
  .object({
    ...webhookFields,
    secret: z.string().max(100).meta({
      description: 'Verifies signatures (Standard Webhooks). It is returned only once.',
      example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    }),
  })
  .meta({ id: 'CreatedWebhook' })

export const deliveryStatuses = ['Pending', 'Delivered', 'Failed'] as const

/** Reasons why a delivery attempt failed. */
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
    statusCode: z
      .int32()
      .optional()
      .meta({ description: 'Status code of the receiver’s response, if any', example: 503 }),
    error: z
      .enum(attemptErrors)
      .optional()
      .meta({ description: 'Absent after a success', example: 'unsuccessful_status' }),
    durationMs: z.int32().min(0).meta({ example: 42 }),
  })
  .meta({ id: 'DeliveryAttempt' })

/** Delivery of one event to one webhook: up to eight attempts in about a day. */
export const Delivery = z
  .object({
    id: id('dlv'),
    status: z.enum(deliveryStatuses).meta({ example: 'Pending' }),
    eventId: id('evt').meta({ description: 'Sent as the webhook-id header, the same for every attempt' }),
    eventType: z.string().max(200).meta({ example: 'platform.job.completed' }),
    attempts: z.array(DeliveryAttempt).max(20).meta({ description: 'The last 20 attempts, oldest first' }),
    nextAttemptAt: timestamp.optional().meta({ description: 'Time of the next attempt; present while Pending' }),
    createdAt: timestamp,
  })
  .meta({ id: 'Delivery' })

export type WebhookCreation = z.infer<typeof WebhookCreation>
export type WebhookChange = z.infer<typeof WebhookChange>
export type Webhook = z.infer<typeof Webhook>
export type CreatedWebhook = z.infer<typeof CreatedWebhook>
export type Delivery = z.infer<typeof Delivery>
export type AttemptError = (typeof attemptErrors)[number]

// Only OrgAdmin and PlatformAdmin have this permission.
const access = 'users:admin'
const tags = ['Webhooks']
const params = z.object({ id: pathId('hook') })

export const listWebhooks = createRoute({
  method: 'get',
  path: '/api/v1/webhooks',
  access,
  tags,
  summary: 'The webhooks of the organisation, newest first',
  responses: { 200: { description: 'Webhooks', content: json(listOf(Webhook, webhookLimit)) } },
  capabilities: ['table:read'],
})

export const createWebhook = createRoute({
  method: 'post',
  path: '/api/v1/webhooks',
  access,
  tags,
  summary: 'Subscribe an address to events',
  description: 'At most 50 per organisation. The secret is returned in this response only.',
  request: { body: jsonBody(WebhookCreation) },
  responses: { 201: { description: 'The webhook with its secret', content: json(CreatedWebhook) } },
  errors: ['url_not_allowed', 'limit_reached'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'secret:webhook-key'],
})

export const changeWebhook = createRoute({
  method: 'patch',
  path: '/api/v1/webhooks/{id}',
  access,
  tags,
  summary: 'Change, enable or disable a webhook',
  description:
    'Events that occur while it is disabled are not delivered. Pending deliveries continue once it is enabled.',
  request: { params, body: jsonBody(WebhookChange) },
  responses: { 200: { description: 'The webhook', content: json(Webhook) } },
  errors: ['webhook_not_found', 'url_not_allowed'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})

export const rotateWebhookSecret = createRoute({
  method: 'post',
  path: '/api/v1/webhooks/{id}/rotate-secret',
  access,
  tags,
  summary: 'Replace the secret of a webhook',
  description:
    'Deliveries are signed with the new secret at once, and for 24 hours also with the previous one, so that the ' +
    'receiver can change without a gap (two signatures in `webhook-signature`, as in Standard Webhooks). The new ' +
    'secret is returned in this response only. If the response is lost, rotate again: every secret of the last 24 ' +
    'hours keeps signing. A fifth rotation within 24 hours is rejected with `limit_reached`.',
  request: { params },
  responses: { 200: { description: 'The webhook with its new secret', content: json(CreatedWebhook) } },
  errors: ['webhook_not_found', 'limit_reached', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'secret:webhook-key'],
})

export const deleteWebhook = createRoute({
  method: 'delete',
  path: '/api/v1/webhooks/{id}',
  access,
  tags,
  summary: 'Remove a webhook and its pending deliveries',
  request: { params },
  responses: { 204: { description: 'Removed' } },
  errors: ['webhook_not_found'],
  capabilities: ['table:write', 'queue:events'],
})

export const testWebhook = createRoute({
  method: 'post',
  path: '/api/v1/webhooks/{id}/test',
  access,
  tags,
  summary: 'Send an event of the type platform.webhook.tested to this webhook only',
  request: { params },
  responses: { 202: { description: 'Accepted; see the deliveries for the result', content: json(Delivery) } },
  errors: ['webhook_not_found', 'webhook_disabled'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})

export const listDeliveries = createRoute({
  method: 'get',
  path: '/api/v1/webhooks/{id}/deliveries',
  access,
  tags,
  summary: 'Deliveries of a webhook in the last 30 days, newest first, at most 1,000',
  request: { params, query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of deliveries', content: json(pageOf(Delivery)) } },
  errors: ['webhook_not_found'],
  capabilities: ['table:read'],
})

export const redeliver = createRoute({
  method: 'post',
  path: '/api/v1/webhooks/{id}/deliveries/{deliveryId}/redeliver',
  access,
  tags,
  summary: 'Redeliver an event of the last 30 days, regardless of the result of its first delivery',
  request: { params: params.extend({ deliveryId: pathId('dlv') }) },
  responses: { 202: { description: 'Accepted for redelivery', content: json(Delivery) } },
  errors: ['webhook_not_found', 'delivery_not_found', 'webhook_disabled', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'queue:webhooks'],
})
