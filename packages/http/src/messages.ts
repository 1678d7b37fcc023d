import * as z from 'zod'

/** A platform operation to run. Messages contain only ids. */
export const JobMessage = z.object({ organisationId: z.string().min(1), jobId: z.string().min(1) })

/**
 * A request to check all clusters for missing heartbeats, jobs of an organisation that were claimed (`id,id`), or an
 * organisation with pending outbox records.
 */
export const EventsMessage = z.union([
  z.object({ organisationId: z.string().min(1), sweep: z.literal('clusters') }),
  z.object({ organisationId: z.string().min(1), started: z.string().min(1) }),
  z.object({ organisationId: z.string().min(1) }),
])

/** A webhook with pending deliveries. */
export const WebhookMessage = z.object({ organisationId: z.string().min(1), webhookId: z.string().min(1) })

/** A batch to advance. */
export const BatchMessage = z.object({ organisationId: z.string().min(1), batchId: z.string().min(1) })

/** An operation of a module to run, or a request to scan the catalog's sources. */
export const InstallMessage = z.union([
  JobMessage,
  z.object({ organisationId: z.string().min(1), scan: z.literal('catalog') }),
])

/** A module with pending events. */
export const ModuleMessage = z.object({ organisationId: z.string().min(1), moduleId: z.string().min(1) })
