import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { config } from '../config.ts'
import { log } from '../log.ts'
import { awsTimeouts } from './sdk.ts'

/** The only code that calls SQS. Messages contain ids only. */

const client = new SQSClient({ maxAttempts: 2, requestHandler: awsTimeouts })

/** The sweep enqueues unprocessed work again after this delay. */
export const outboxRetryMs = config.PLAT_OUTBOX_RETRY_SECONDS * 1000

/** A job to dispatch. */
export interface JobReference {
  organisationId: string
  jobId: string
}

/** A batch to advance. */
export interface BatchReference {
  organisationId: string
  batchId: string
}

/** A webhook with pending deliveries. */
export interface WebhookReference {
  organisationId: string
  webhookId: string
}

/** An operation of the platform, such as installing a module. */
export type OperationReference = JobReference

/** Enqueues a stored job. */
export const enqueueJob = ({ organisationId, jobId }: JobReference): Promise<void> =>
  enqueue(config.PLAT_QUEUE_JOBS, { organisationId, jobId })

/** Enqueues a stored batch. */
export const enqueueBatch = ({ organisationId, batchId }: BatchReference): Promise<void> =>
  enqueue(config.PLAT_QUEUE_BATCHES, { organisationId, batchId })

/** Enqueues a stored operation. */
export const enqueueOperation = ({ organisationId, jobId }: OperationReference, delaySeconds = 0): Promise<void> =>
  enqueue(config.PLAT_QUEUE_UPDATES, { organisationId, jobId }, delaySeconds)

/** Enqueues a scan of the catalog's sources. */
export const enqueueCatalogScan = (organisationId: string): Promise<void> =>
  enqueue(config.PLAT_QUEUE_UPDATES, { organisationId, scan: 'catalog' })

/** Enqueues the delivery of a module's pending events. */
export const enqueueModuleDelivery = (organisationId: string, moduleId: string, delaySeconds = 0): Promise<void> =>
  enqueue(config.PLAT_QUEUE_MODULES, { organisationId, moduleId }, delaySeconds, moduleId)

/** Enqueues the projection of an organisation's outbox. */
export const enqueueProjections = (organisationId: string): Promise<void> =>
  enqueue(config.PLAT_QUEUE_EVENTS, { organisationId })

/** Enqueues the deliveries of a webhook, with a delay of up to 900 seconds. */
export const enqueueWebhook = ({ organisationId, webhookId }: WebhookReference, delaySeconds = 0): Promise<void> =>
  enqueue(config.PLAT_QUEUE_WEBHOOKS, { organisationId, webhookId }, delaySeconds)

/**
 * Errors are only logged: the work is stored, and the sweep enqueues it again. Each organisation or module is a message
 * group, so that SQS delivers a flood of one after the messages of others.
 */
async function enqueue(
  QueueUrl: string,
  message: { organisationId: string } & Record<string, string>,
  DelaySeconds = 0,
  MessageGroupId = message.organisationId,
): Promise<void> {
  const body = { QueueUrl, MessageBody: JSON.stringify(message), MessageGroupId }
  try {
    await client.send(new SendMessageCommand({ ...body, ...(DelaySeconds > 0 && { DelaySeconds }) }))
  } catch (error) {
    log('warn', 'Failed to enqueue message; the sweep retries', { ...message, error: String(error) })
  }
}
