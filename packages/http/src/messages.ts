import * as z from 'zod'

/** Names a job that is announced. Messages carry ids only. */
export const JobMessage = z.object({ organisationId: z.string().min(1), jobId: z.string().min(1) })

/** Names an organisation whose outbox holds records. */
export const RecordsMessage = z.object({ organisationId: z.string().min(1) })

/** Names a webhook that has deliveries to make. */
export const WebhookMessage = z.object({ organisationId: z.string().min(1), webhookId: z.string().min(1) })

/** Names a batch that is announced. */
export const BatchMessage = z.object({ organisationId: z.string().min(1), batchId: z.string().min(1) })

/** Names a job of the platform on itself, or asks for the sources of the catalog to be looked at. */
export const UpdateMessage = z.union([
  JobMessage,
  z.object({ organisationId: z.string().min(1), scan: z.literal('catalog') }),
])

/** Names a module that events wait for. */
export const ModuleMessage = z.object({ organisationId: z.string().min(1), moduleId: z.string().min(1) })
