import * as z from 'zod'
import { clusterStatuses, clusterTypes } from './cluster.ts'
import { id, listOf, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { jobTypes, statusReasons } from './job.ts'
import { Labels } from './label.ts'
import { ModuleId, version } from './manifest.ts'
import { providerProblems, providerTypes } from './identity.ts'
import { moduleErrorCodes, moduleHealths } from './module.ts'
import { updateActions } from './update.ts'

const userFields = { userId: id('user'), username: z.string().max(64), displayName: z.string().max(100).optional() }
const clusterFields = { clusterId: id('clus'), name: z.string().max(64) }

const jobFields = {
  jobId: id('job'),
  clusterId: id('clus').optional(),
  batchId: id('batch').optional(),
  type: z.enum(jobTypes),
  createdBy: z.string().max(40).meta({ description: 'The user who submitted it' }),
}
const endedJob = z.object({
  ...jobFields,
  previousStatus: z.enum(['Queued', 'Running']),
  statusReason: z.enum(statusReasons).optional(),
  exitCode: z.int32().nullable().optional(),
})

const name = z.string().max(100).optional().meta({ description: 'Name of the job or batch, if it has one' })

const moduleFields = { moduleId: ModuleId, version }

const providerFields = { providerId: id('idp'), type: z.enum(providerTypes) }

const updateFields = { jobId: id('job'), version, previousVersion: version }

const relayUpdateFields = {
  relayUpdateId: id('rupd'),
  version,
  createdBy: z.string().max(40),
  completed: z.int32().min(0).meta({ description: 'Number of relays that run the version' }),
  rolledBack: z.int32().min(0).meta({ description: 'Number of relays that returned to their previous version' }),
}

/** Number of jobs of a batch by status. */
export const BatchCounts = z
  .object({
    queued: z.int32().min(0),
    running: z.int32().min(0),
    completed: z.int32().min(0),
    failed: z.int32().min(0),
    cancelled: z.int32().min(0),
  })
  .meta({ id: 'BatchCounts', example: { queued: 0, running: 0, completed: 498, failed: 2, cancelled: 0 } })
export type BatchCounts = z.infer<typeof BatchCounts>

/** Domain events: name → schema of the data. As a CloudEvent, an event has the type `platform.<name>`. */
export const eventSchemas = {
  'setup.completed': z.object({ platformName: z.string().max(200), organisationId: id('org') }),
  'user.created': z.object({ ...userFields, roles: z.array(z.string().max(50)).max(20) }),
  'user.signed_in': z.object({ ...userFields, sessionId: id('sess') }),
  'user.sign_in_failed': z.object(userFields),
  'user.password_reset': z.object(userFields),
  'user.suspended': z.object({ ...userFields, reason: z.string().max(200) }),
  'user.deleted': z.object(userFields),
  'token.created': z.object({ userId: id('user'), tokenId: id('tok'), name: z.string().max(100) }),
  'organisation.recovered': z.object(userFields),
  'session.reuse_detected': z.object({ userId: id('user'), sessionId: id('sess') }),
  'cluster.registered': z.object({ ...clusterFields, type: z.enum(clusterTypes) }),
  'cluster.enrolled': z.object({ ...clusterFields, relayId: id('relay'), nodeCount: z.int32().min(0) }),
  'cluster.status_changed': z.object({
    ...clusterFields,
    status: z.enum(clusterStatuses),
    previousStatus: z.enum(clusterStatuses),
  }),
  'cluster.updated': z.object({ ...clusterFields, siteId: id('site').nullable() }),
  'cluster.deleted': z.object({ ...clusterFields, labels: Labels.optional() }),
  'relay.replaced': z.object({ ...clusterFields, relayId: id('relay'), previousRelayId: id('relay') }),
  'relay.duplicate_detected': z.object({ ...clusterFields, relayId: id('relay') }),
  'relay.update_completed': z.object(relayUpdateFields),
  'relay.update_stopped': z.object({ ...relayUpdateFields, reason: z.string().max(1000) }),
  'enrollment.reuse_detected': z.object({
    clusterId: id('clus'),
    enrollmentId: z
      .union([id('enroll'), id('ekey')])
      .meta({ description: 'The enrollment token, or the enrollment key of a copied relay' }),
  }),
  'job.queued': z.object(jobFields),
  'job.started': z.object({ ...jobFields, relayId: id('relay').optional() }),
  'job.completed': endedJob,
  'job.failed': endedJob.extend({ name }),
  'job.cancelled': endedJob,
  'batch.accepted': z.object({ batchId: id('batch'), submittedCount: z.int32(), createdBy: z.string().max(40) }),
  'batch.finished': z.object({ batchId: id('batch'), name, counts: BatchCounts, createdBy: z.string().max(40) }),
  'module.installing': z.object({ ...moduleFields, jobId: id('job'), previousVersion: version.optional() }),
  'module.installed': z.object({
    ...moduleFields,
    jobId: id('job'),
    previousVersion: version.optional(),
    verified: z.boolean(),
  }),
  'module.failed': z.object({
    ...moduleFields,
    jobId: id('job')
      .optional()
      .meta({ description: 'The installation that failed; absent if a running module failed' }),
    code: z.enum(moduleErrorCodes).optional(),
    message: z.string().max(1000),
  }),
  'module.uninstalled': z.object({ ...moduleFields, jobId: id('job') }),
  'module.health_changed': z.object({
    ...moduleFields,
    health: z.enum(moduleHealths),
    previousHealth: z.enum(moduleHealths),
  }),
  'module.heartbeat_missed': z.object({
    ...moduleFields,
    missed: z.int32().min(2),
    backgroundJobId: z.string().max(50).optional().meta({
      description: 'The background job whose runs failed; absent if the health endpoint did not respond',
    }),
  }),
  'identity.provider_configured': z.object({ ...providerFields, displayName: z.string().max(100) }),
  'identity.provider_failed': z.object({
    ...providerFields,
    displayName: z.string().max(100),
    problem: z.enum(providerProblems),
    detail: z.string().max(500),
  }),
  'identity.consent_received': z.object({ ...providerFields, consent: z.enum(['granted', 'denied', 'error']) }),
  'update.available': z.object({ version, currentVersion: version, releaseNotesUrl: z.string().max(2000).optional() }),
  'update.started': z.object({ ...updateFields, action: z.enum(updateActions) }),
  'update.completed': z.object(updateFields),
  'update.failed': z.object({
    ...updateFields,
    action: z.enum(updateActions),
    message: z.string().max(1000).meta({ description: 'Reason of the failure; the previous version is active' }),
  }),
  'update.rolled_back': z.object(updateFields),
  'webhook.tested': z.object({ webhookId: id('hook') }),
  'webhook.disabled': z.object({ webhookId: id('hook'), url: z.string().max(2000), createdBy: z.string().max(40) }),
} as const satisfies Record<string, z.ZodObject>

/** Name of an event; its CloudEvents type is `platform.<name>`. */
export type EventName = keyof typeof eventSchemas

export const isEventName = (name: string): name is EventName => Object.hasOwn(eventSchemas, name)

export const eventNames: readonly EventName[] = Object.keys(eventSchemas).filter(isEventName)

/** An event before it is stored. `subject` is the id of the resource that it is about. */
export type EventOf<Name extends EventName = EventName> = Name extends EventName
  ? { name: Name; subject: string; data: z.infer<(typeof eventSchemas)[Name]> }
  : never

/** An event that a module publishes. Its name starts with `module.<module id>` and is also its CloudEvents type. */
export interface ModuleEvent {
  name: `module.${string}.${string}`
  subject: string
  data: Record<string, unknown>
}

const moduleEventName = /^module\.[a-z][a-z0-9-]*(?:\.[A-Za-z0-9_-]+)+$/

/**
 * Whether a name belongs to an event that a module publishes. The platform's own events about modules have one segment
 * after `module.`.
 */
export const isModuleEventName = (name: string): name is ModuleEvent['name'] => moduleEventName.test(name)

/** Descriptions in the event catalog, for users who choose webhook subscriptions. */
export const eventDescriptions: Record<EventName, string> = {
  'setup.completed': 'The platform was set up.',
  'user.created': 'A user was created.',
  'user.signed_in': 'A user signed in.',
  'user.sign_in_failed': 'A sign-in failed.',
  'user.password_reset': 'The operator of the platform set a new password for a user.',
  'user.suspended':
    'An identity provider no longer confirms a user: the sessions have ended, and the API tokens are suspended.',
  'user.deleted': 'A user was removed.',
  'token.created': 'A user created an API token.',
  'organisation.recovered': 'A platform administrator created an administrator of an organisation that had none.',
  'session.reuse_detected': 'A refresh token was used twice; the session has ended.',
  'cluster.registered': 'A cluster was registered.',
  'cluster.enrolled': 'A relay enrolled for a cluster.',
  'cluster.status_changed': 'A cluster became Healthy, Degraded or Offline.',
  'cluster.updated': 'A cluster was renamed or moved to another site.',
  'cluster.deleted': 'A cluster was removed from the platform.',
  'relay.replaced': 'A new relay replaced the relay of a cluster.',
  'relay.duplicate_detected': 'Two relays use the same key.',
  'relay.update_completed': 'Every relay of a relay update was updated, rolled back or skipped.',
  'relay.update_stopped': 'The platform stopped a relay update, for example because too many relays rolled back.',
  'enrollment.reuse_detected':
    'A used enrollment token was used again, or a copied relay used an enrollment key; nothing was enrolled.',
  'job.queued': 'A job was accepted.',
  'job.started': 'A relay started to run a job.',
  'job.completed': 'A job completed successfully.',
  'job.failed': 'A job failed.',
  'job.cancelled': 'A job was cancelled.',
  'batch.accepted': 'A batch was accepted.',
  'batch.finished': 'Every job of a batch has ended.',
  'module.installing': 'A module is being installed or upgraded.',
  'module.installed': 'A module was installed or upgraded, and is running.',
  'module.failed': 'A module could not be installed, or a running module failed.',
  'module.uninstalled': 'A module was uninstalled.',
  'module.health_changed': 'A module became Healthy, Degraded or Unhealthy.',
  'module.heartbeat_missed':
    'A module has not responded to two consecutive health checks, or two consecutive runs of a background job failed.',
  'identity.provider_configured': 'An identity provider was added or changed.',
  'identity.provider_failed':
    'Sign-ins with an identity provider fail or are impaired. Each problem is reported at most once an hour.',
  'identity.consent_received': 'An identity provider returned the result of a consent request.',
  'update.available': 'A newer release of the platform can be applied.',
  'update.started': 'An update or rollback of the platform started.',
  'update.completed': 'The platform was updated.',
  'update.failed': 'An update or rollback of the platform failed; the previous version is active.',
  'update.rolled_back': 'The platform rolled back to its previous version on request.',
  'webhook.tested': 'A test of a webhook. It is sent only to that webhook, regardless of its subscriptions.',
  'webhook.disabled': 'A webhook was disabled after too many failures.',
}

/** An event in the CloudEvents 1.0 JSON format. */
export const CloudEvent = z
  .object({
    specversion: z.literal('1.0'),
    id: id('evt'),
    source: z.string().max(500).meta({
      description: 'The organisation that the event belongs to',
      example: '/organisations/org_01jd8w5k3zr9x2m4c7t6v0b1qa',
    }),
    type: z.string().max(200).meta({ example: 'platform.job.completed' }),
    subject: z
      .string()
      .max(200)
      .meta({ description: 'Resource that the event is about', example: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    time: timestamp,
    datacontenttype: z.literal('application/json'),
    traceid: z.string().max(32).optional().meta({ description: 'Trace id of the request that caused it' }),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'CloudEvent' })
export type CloudEvent = z.infer<typeof CloudEvent>

const EventDescription = z
  .object({
    type: z.string().max(100).meta({ example: 'platform.job.completed' }),
    description: z.string().max(500).meta({ example: 'A job completed successfully.' }),
    schema: z.record(z.string(), z.unknown()).meta({ description: 'JSON Schema 2020-12 of the event’s data' }),
  })
  .meta({ id: 'EventDescription' })

export const getEventCatalog = createRoute({
  method: 'get',
  path: '/api/v1/events/catalog',
  access: 'user',
  tags: ['Events'],
  summary: 'Every event that the platform emits, with the schema of its data',
  responses: { 200: { description: 'The catalog', content: json(listOf(EventDescription, 200)) } },
})
