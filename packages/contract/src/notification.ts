import * as z from 'zod'
import { id, pageOf, paging, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'

export const notificationTypes = [
  'ClusterHealthDegraded',
  'ClusterOffline',
  'ClusterRecovered',
  'JobFailed',
  'BatchFinished',
  'ModuleInstalled',
  'ModuleFailed',
  'UpdateAvailable',
  'UpdateCompleted',
  'UpdateFailed',
  'RelayUpdateCompleted',
  'RelayUpdateStopped',
  'SecurityAlert',
  'WebhookDisabled',
] as const
export type NotificationType = (typeof notificationTypes)[number]

export const severities = ['info', 'warning', 'critical'] as const
export type Severity = (typeof severities)[number]

export const Notification = z
  .object({
    id: id('notif'),
    type: z.enum(notificationTypes),
    title: z.string().max(200),
    body: z.string().max(3000),
    severity: z.enum(severities),
    resource: z.string().max(200).meta({ description: 'Identifier of the resource that the notification is about' }),
    count: z.int32().min(2).optional().meta({
      description:
        'Number of clusters, if one notification reports a status change of many; `resource` is then the organisation',
    }),
    read: z.boolean(),
    createdAt: timestamp,
  })
  .meta({
    id: 'Notification',
    example: {
      id: 'notif_01jd8w5k3zr9x2m4c7t6v0b1qa',
      type: 'ClusterHealthDegraded',
      title: 'Cluster berlin-1 is degraded',
      body: 'It was Healthy before.',
      severity: 'warning',
      resource: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa',
      read: false,
      createdAt: '2026-11-21T09:30:00.000Z',
    },
  })
export type Notification = z.infer<typeof Notification>

const NotificationPage = pageOf(Notification).extend({
  unreadCount: z
    .int32()
    .min(0)
    .meta({ description: 'Number of unread notifications, independent of the filter', example: 1 }),
})

export const listNotifications = createRoute({
  method: 'get',
  path: '/api/v1/notifications',
  access: 'user',
  tags: ['Notifications'],
  summary: 'The notifications of the caller, newest first',
  description:
    'Notifications of the last 90 days. `unreadCount` counts all unread notifications, independent of the filter.',
  request: {
    query: z.strictObject({
      unreadOnly: z
        .enum(['true', 'false'])
        .optional()
        .transform((value) => value === 'true')
        .meta({ description: 'Only unread notifications', type: 'boolean', default: false }),
      type: z.enum(notificationTypes).optional(),
      severity: z.enum(severities).optional(),
      ...paging,
    }),
  },
  responses: { 200: { description: 'A page of notifications', content: json(NotificationPage) } },
  capabilities: ['table:read'],
})

export const NotificationUpdate = z
  .strictObject({
    ids: z
      .array(z.string().max(200).meta({ example: 'notif_01jd8w5k3zr9x2m4c7t6v0b1qa' }))
      .max(1000)
      .optional()
      .meta({ description: 'Notifications to mark as read; unknown identifiers are ignored' }),
    markAllRead: z
      .boolean()
      .optional()
      .meta({ description: 'Marks all current notifications of the caller; `ids` is then ignored' }),
  })
  .meta({ id: 'NotificationUpdate' })
export type NotificationUpdate = z.infer<typeof NotificationUpdate>

export const updateNotifications = createRoute({
  method: 'patch',
  path: '/api/v1/notifications',
  access: 'user',
  tags: ['Notifications'],
  summary: 'Mark notifications as read',
  request: { body: jsonBody(NotificationUpdate) },
  responses: { 204: { description: 'Marked' } },
  capabilities: ['table:read', 'table:write', 'queue:events'],
})
