import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { config } from '../config.ts'
import { log } from '../log.ts'
import { awsTimeouts } from './timeouts.ts'

/** The only code that speaks SQS. Messages carry ids only. */

const client = new SQSClient({ maxAttempts: 2, requestHandler: awsTimeouts })

/** What nobody has heard of this long after it was stored is announced again by the sweep. */
export const outboxRetryMs = config.PLAT_ANNOUNCE_AGAIN_SECONDS * 1000

/** Names a job in a message. */
export interface JobReference {
  organisationId: string
  jobId: string
}

/** Names a batch in a message. */
export interface BatchReference {
  organisationId: string
  batchId: string
}

/** Names a webhook that has deliveries to make. */
export interface WebhookReference {
  organisationId: string
  webhookId: string
}

/** Names a job of the platform on itself, such as the installation of a module. */
export type OperationReference = JobReference

/** Announces a job that is stored already. */
export const enqueueJob = ({ organisationId, jobId }: JobReference): Promise<void> =>
  announce(config.PLAT_QUEUE_JOBS, { organisationId, jobId })

/** Announces a batch that is stored already. */
export const enqueueBatch = ({ organisationId, batchId }: BatchReference): Promise<void> =>
  announce(config.PLAT_QUEUE_BATCHES, { organisationId, batchId })

/** Announces a job of the platform on itself that is stored already. */
export const enqueueOperation = ({ organisationId, jobId }: OperationReference, delaySeconds = 0): Promise<void> =>
  announce(config.PLAT_QUEUE_UPDATES, { organisationId, jobId }, delaySeconds)

/** Asks for the sources of the catalog to be looked at. */
export const enqueueCatalogScan = (organisationId: string): Promise<void> =>
  announce(config.PLAT_QUEUE_UPDATES, { organisationId, scan: 'catalog' })

/** Announces that events wait for a module. */
export const enqueueModuleDelivery = (organisationId: string, moduleId: string, delaySeconds = 0): Promise<void> =>
  announce(config.PLAT_QUEUE_MODULES, { organisationId, moduleId }, delaySeconds, moduleId)

/** Announces that an organisation's outbox holds records. */
export const enqueueProjections = (organisationId: string): Promise<void> =>
  announce(config.PLAT_QUEUE_EVENTS, { organisationId })

/** Announces that a webhook has deliveries to make, at once or up to 900 seconds later. */
export const enqueueWebhook = ({ organisationId, webhookId }: WebhookReference, delaySeconds = 0): Promise<void> =>
  announce(config.PLAT_QUEUE_WEBHOOKS, { organisationId, webhookId }, delaySeconds)

/**
 * A failure is only logged: what is announced is stored, and the sweep announces again what nobody has heard of. Each
 * organisation is a group of its own, and each module: SQS hands out the messages of one that floods a queue behind those
 * of its neighbours.
 */
async function announce(
  QueueUrl: string,
  message: { organisationId: string } & Record<string, string>,
  DelaySeconds = 0,
  MessageGroupId = message.organisationId,
): Promise<void> {
  const body = { QueueUrl, MessageBody: JSON.stringify(message), MessageGroupId }
  try {
    await client.send(new SendMessageCommand({ ...body, ...(DelaySeconds > 0 && { DelaySeconds }) }))
  } catch (error) {
    log('warn', 'Nothing could be announced; the sweep will', { ...message, error: String(error) })
  }
}
