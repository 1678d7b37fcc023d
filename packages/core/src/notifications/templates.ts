import { type EventName, eventSchemas, isEventName } from '@platform/contract/event'
import type { Notification } from '@platform/contract/notification'
import { isolate, nameOf } from '@platform/contract/user-name'
import type * as z from 'zod'
import { isId } from '../id.ts'
import type { Audience } from './recipients.ts'
import type { StoredOutboxEvent } from '../outbox/record.ts'

export interface NotificationTemplate extends Pick<
  Notification,
  'type' | 'title' | 'body' | 'severity' | 'resource' | 'count'
> {
  audience: Audience
  /** Set if a cooldown applies to the type and cluster. */
  clusterId?: string
  /** The job or batch, whose title and cluster are added to the title of the notification. */
  titledResource?: { jobId: string; clusterId: string | undefined } | { batchId: string }
}

const template =
  <Schema extends z.ZodType>(schema: Schema, render: (data: z.output<Schema>) => NotificationTemplate | undefined) =>
  (data: unknown) =>
    render(schema.parse(data))

const administrators = { permission: 'users:admin' } as const

const statuses = {
  Degraded: { type: 'ClusterHealthDegraded', severity: 'warning', one: 'is degraded', many: 'are degraded' },
  Offline: { type: 'ClusterOffline', severity: 'critical', one: 'is offline', many: 'are offline' },
  Healthy: { type: 'ClusterRecovered', severity: 'info', one: 'has recovered', many: 'have recovered' },
} as const

type NotifiedStatus = keyof typeof statuses
export const isNotifiedStatus = (status: string): status is NotifiedStatus => Object.hasOwn(statuses, status)

export const statusOfType = (type: string): NotifiedStatus | undefined =>
  Object.keys(statuses)
    .filter(isNotifiedStatus)
    .find((status) => statuses[status].type === type)

const audience = { permission: 'clusters:read' } as const

export function clusterNotification(
  status: NotifiedStatus,
  { clusterId, name, body }: { clusterId: string; name: string; body: string },
): NotificationTemplate {
  const { type, severity, one } = statuses[status]
  return { type, severity, title: `Cluster ${name} ${one}`, body, resource: clusterId, clusterId, audience }
}

/** `names` may contain only some of the `count` clusters. */
export function clustersNotification(
  status: NotifiedStatus,
  { organisationId, count, names }: { organisationId: string; count: number; names: readonly string[] },
): NotificationTemplate {
  const { type, severity, many } = statuses[status]
  const moreText = count > names.length ? ` and ${count - names.length} more` : ''
  const body = `${names.join(', ')}${moreText}.`
  return { type, severity, title: `${count} clusters ${many}`, body, resource: organisationId, count, audience }
}

const clusterStatus = template(
  eventSchemas['cluster.status_changed'],
  ({ clusterId, name, status, previousStatus }) => {
    const isFirst = previousStatus === 'Pending' && status === 'Healthy'
    if (status === 'Pending' || isFirst) return undefined
    return clusterNotification(status, { clusterId, name, body: `It was ${previousStatus} before.` })
  },
)

const reasonTexts: Record<string, string> = {
  delivery_timeout: 'No relay claimed it in time.',
  exit_nonzero: 'The script ended with an error.',
  execution_timeout: 'The script exceeded its time limit.',
  relay_rejected: 'The relay rejected it.',
  interrupted: 'The run was interrupted.',
  lease_lost: 'The relay stopped responding.',
  dead_lettered: 'It could not be delivered to the relay.',
}

/** A batch sends one notification when it finishes, and operations have events of their own. */
const jobFailed = template(eventSchemas['job.failed'], (data) => {
  const { jobId, clusterId, batchId, type, statusReason = '', exitCode, createdBy } = data
  if (batchId !== undefined || type !== 'InvokeScript') return undefined
  const code = typeof exitCode === 'number' ? ` Exit code ${exitCode}.` : ''
  const body = `${reasonTexts[statusReason] ?? 'It did not complete.'}${code}`
  return {
    type: 'JobFailed',
    severity: 'warning',
    title: 'A job failed',
    body,
    resource: jobId,
    titledResource: { jobId, clusterId },
    audience: { userId: createdBy },
  }
})

const batchFinished = template(eventSchemas['batch.finished'], ({ batchId, counts, createdBy }) => {
  const { completed, failed, cancelled } = counts
  const severity = failed === 0 ? 'info' : completed === 0 ? 'critical' : 'warning'
  const body = `${completed} completed, ${failed} failed, ${cancelled} cancelled.`
  return {
    type: 'BatchFinished',
    severity,
    title: 'A batch has finished',
    body,
    resource: batchId,
    titledResource: { batchId },
    audience: { userId: createdBy },
  }
})

const sessionReused = template(eventSchemas['session.reuse_detected'], ({ userId, sessionId }) => ({
  type: 'SecurityAlert',
  severity: 'critical',
  title: 'One of your sessions was ended',
  body: 'Its refresh token was used twice. Change your password if this was not you.',
  resource: sessionId,
  audience: { userId },
}))

const passwordReset = template(eventSchemas['user.password_reset'], ({ userId, ...names }) => ({
  type: 'SecurityAlert',
  severity: 'critical',
  title: `The password of ${nameOf(names)} was reset`,
  body: 'The operator of the platform set a new one, which ended all sessions and API tokens of this user.',
  resource: userId,
  audience: { userId, ...administrators },
}))

const userSuspended = template(eventSchemas['user.suspended'], ({ userId, reason, ...names }) => ({
  type: 'SecurityAlert',
  severity: 'warning',
  title: `The sessions of ${nameOf(names)} were ended`,
  body: `${reason}. API tokens of this user are suspended until the user signs in with the identity provider again.`,
  resource: userId,
  audience: { userId, ...administrators },
}))

const tokenCreated = template(eventSchemas['token.created'], ({ userId, tokenId, name }) => ({
  type: 'SecurityAlert',
  severity: 'info',
  title: `API token ${isolate(name)} was created`,
  body: 'It can call the API on your behalf. If you did not create it, revoke it and change your password.',
  resource: tokenId,
  audience: { userId },
}))

const organisationRecovered = template(eventSchemas['organisation.recovered'], ({ userId, ...names }) => ({
  type: 'SecurityAlert',
  severity: 'critical',
  title: 'A platform administrator created an administrator',
  body: `${nameOf(names)} now administers this organisation, which had no administrator. Ask the operator of the platform if you did not expect this.`,
  resource: userId,
  // All roles have this permission.
  audience: { permission: 'clusters:read' },
}))

const enrollmentReused = template(eventSchemas['enrollment.reuse_detected'], ({ clusterId, enrollmentId }) => ({
  type: 'SecurityAlert',
  severity: 'critical',
  ...(isId('ekey', enrollmentId)
    ? {
        title: 'A relay was copied to another machine',
        body: `Nothing was enrolled. The copy has the enrollment key ${enrollmentId}: if you did not copy the state folder, revoke it and create another one.`,
      }
    : {
        title: 'An enrollment token was used again',
        body: `Nothing was enrolled. Token ${enrollmentId} may have leaked; issue a new one if the relay is not yours.`,
      }),
  resource: clusterId,
  audience: administrators,
}))

const relayDuplicated = template(eventSchemas['relay.duplicate_detected'], ({ clusterId, name }) => ({
  type: 'SecurityAlert',
  severity: 'critical',
  title: `Two relays of ${name} use the same key`,
  body: 'The state folder was copied, or the key was stolen. Issue a new enrollment token and enroll one relay with it, which revokes the key.',
  resource: clusterId,
  audience: administrators,
}))

const relayUpdateCompleted = template(
  eventSchemas['relay.update_completed'],
  ({ relayUpdateId, version, createdBy, completed, rolledBack }) => ({
    type: 'RelayUpdateCompleted',
    severity: 'info',
    title: `The relay update to ${shorten(version)} is complete`,
    body: `${completed} completed, ${rolledBack} rolled back.`,
    resource: relayUpdateId,
    audience: { userId: createdBy },
  }),
)

const relayUpdateStopped = template(
  eventSchemas['relay.update_stopped'],
  ({ relayUpdateId, version, createdBy, reason }) => ({
    type: 'RelayUpdateStopped',
    severity: 'critical',
    title: `The relay update to ${shorten(version)} was stopped`,
    body: reason,
    resource: relayUpdateId,
    audience: { userId: createdBy, permission: 'clusters:admin' },
  }),
)

const webhookDisabled = template(eventSchemas['webhook.disabled'], ({ webhookId, url, createdBy }) => ({
  type: 'WebhookDisabled',
  severity: 'warning',
  title: 'A webhook was disabled',
  body: `Too many deliveries to ${url} failed, or it responded 410 Gone.`,
  resource: webhookId,
  audience: { userId: createdBy, ...administrators },
}))

const problemTitles = {
  unreachable: 'is unreachable',
  answer_invalid: 'sends errors or invalid responses',
  groups_incomplete: 'sends incomplete lists of groups',
} as const

const providerFailed = template(
  eventSchemas['identity.provider_failed'],
  ({ providerId, displayName, problem, detail }) => ({
    type: 'SecurityAlert',
    severity: 'warning',
    title: `Identity provider ${displayName} ${problemTitles[problem]}`,
    body: `${detail} Test the provider in the settings.`,
    resource: providerId,
    audience: administrators,
  }),
)

const operators = { permission: 'modules:install' } as const

const moduleInstalled = template(eventSchemas['module.installed'], ({ moduleId, version, previousVersion }) => ({
  type: 'ModuleInstalled',
  severity: 'info',
  title: `Module ${moduleId} was ${previousVersion === undefined ? 'installed' : 'upgraded'}`,
  body:
    previousVersion === undefined
      ? `Version ${version} is running.`
      : `Version ${version} replaces ${previousVersion}.`,
  resource: moduleId,
  audience: operators,
}))

const moduleFailed = template(eventSchemas['module.failed'], ({ moduleId, version, jobId, message }) => ({
  type: 'ModuleFailed',
  severity: jobId === undefined ? 'critical' : 'warning',
  title:
    jobId === undefined
      ? `Module ${moduleId} has failed`
      : `Module ${moduleId} ${shorten(version)} could not be installed`,
  body: message,
  resource: moduleId,
  audience: operators,
}))

const moduleSilent = template(eventSchemas['module.heartbeat_missed'], ({ moduleId, missed, backgroundJobId }) => ({
  type: 'ModuleFailed',
  severity: 'warning',
  ...(backgroundJobId === undefined
    ? { title: `Module ${moduleId} does not respond`, body: `It missed ${missed} consecutive health checks.` }
    : {
        title: `A background job of module ${moduleId} fails`,
        body: `${backgroundJobId} failed in its last ${missed} runs. The log of the module contains the reasons.`,
      }),
  resource: moduleId,
  audience: operators,
}))

const platformOperators = { permission: 'platform:admin' } as const
/** A version can be longer than a title. */
const shorten = (version: string): string => version.slice(0, 100)

const updateAvailable = template(eventSchemas['update.available'], ({ version, currentVersion, releaseNotesUrl }) => ({
  type: 'UpdateAvailable',
  severity: 'info',
  title: `Version ${shorten(version)} of the platform is available`,
  body: `The current version is ${currentVersion}.${releaseNotesUrl === undefined ? '' : ` Release notes: ${releaseNotesUrl}`}`,
  resource: shorten(version),
  audience: platformOperators,
}))

const updateCompleted = template(eventSchemas['update.completed'], ({ jobId, version, previousVersion }) => ({
  type: 'UpdateCompleted',
  severity: 'info',
  title: `The platform was updated to ${shorten(version)}`,
  body: `Version ${version} replaces ${previousVersion}.`,
  resource: jobId,
  audience: platformOperators,
}))

const updateRolledBack = template(eventSchemas['update.rolled_back'], ({ jobId, version, previousVersion }) => ({
  type: 'UpdateCompleted',
  severity: 'info',
  title: `The platform was rolled back to ${shorten(version)}`,
  body: `Version ${version} replaces ${previousVersion}, as requested.`,
  resource: jobId,
  audience: platformOperators,
}))

const updateFailed = template(
  eventSchemas['update.failed'],
  ({ jobId, action, version, previousVersion, message }) => ({
    type: 'UpdateFailed',
    severity: 'critical',
    title: `The ${action === 'apply' ? 'update' : 'rollback'} to ${shorten(version)} failed`,
    body: `${message} Version ${previousVersion} is active.`,
    resource: jobId,
    audience: platformOperators,
  }),
)

const templates: Partial<Record<EventName, (data: unknown) => NotificationTemplate | undefined>> = {
  'cluster.status_changed': clusterStatus,
  'job.failed': jobFailed,
  'batch.finished': batchFinished,
  'session.reuse_detected': sessionReused,
  'user.password_reset': passwordReset,
  'user.suspended': userSuspended,
  'token.created': tokenCreated,
  'organisation.recovered': organisationRecovered,
  'enrollment.reuse_detected': enrollmentReused,
  'relay.duplicate_detected': relayDuplicated,
  'relay.update_completed': relayUpdateCompleted,
  'relay.update_stopped': relayUpdateStopped,
  'webhook.disabled': webhookDisabled,
  'identity.provider_failed': providerFailed,
  'module.installed': moduleInstalled,
  'module.failed': moduleFailed,
  'module.heartbeat_missed': moduleSilent,
  'update.available': updateAvailable,
  'update.completed': updateCompleted,
  'update.rolled_back': updateRolledBack,
  'update.failed': updateFailed,
}

export const notificationFor = ({ name, data }: StoredOutboxEvent): NotificationTemplate | undefined =>
  isEventName(name) ? templates[name]?.(data) : undefined
