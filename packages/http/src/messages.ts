import * as z from 'zod'

/** A request to run an operation of the platform. */
export const JobMessage = z.object({ organisationId: z.string().min(1), jobId: z.string().min(1) })

/**
 * A request to check the clusters of an organisation for missing heartbeats, to record the starts and ends of jobs
 * (`jobs`: ids separated by commas), or to process the pending outbox records of the organisation.
 */
export const EventsMessage = z.union([
  z.object({ organisationId: z.string().min(1), sweep: z.literal('clusters') }),
  z.object({ organisationId: z.string().min(1), jobs: z.string().min(1) }),
  z.object({ organisationId: z.string().min(1) }),
])

/** A request to send the pending deliveries of a webhook. */
export const WebhookMessage = z.object({ organisationId: z.string().min(1), webhookId: z.string().min(1) })

/** A request to advance a batch. */
export const BatchMessage = z.object({ organisationId: z.string().min(1), batchId: z.string().min(1) })

/** A request to run an operation of a module, or to scan the catalog's sources. */
export const InstallMessage = z.union([
  JobMessage,
  z.object({ organisationId: z.string().min(1), scan: z.literal('catalog') }),
])

/** A request to deliver the pending events of a module. */
export const ModuleMessage = z.object({ organisationId: z.string().min(1), moduleId: z.string().min(1) })
