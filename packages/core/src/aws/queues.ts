import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { currentTimes, elapsedMs, isRecent, type Times } from '../clock.ts'
import { config } from '../config.ts'
import { singleFlight } from '../lib/async.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { log } from '../log.ts'
import { awsSettings, withTransport } from './sdk.ts'

/** Messages contain ids, never data. */

const client = withTransport(new SQSClient({ maxAttempts: 2, ...awsSettings }))

export const outboxRetryMs = config.PLAT_OUTBOX_RETRY_SECONDS * 1000

/** Delays messages about changes that another change usually follows, so that one run processes both. */
const coalescingDelaySeconds = 2

/** Delay of the message that changes share above `immediateMessagesPerSecond`. */
const sharedDelaySeconds = 1

/** Delay of messages about listed jobs of batches that were claimed or have ended. */
const recordingDelaySeconds = 1

export interface JobReference {
  organisationId: string
  jobId: string
}

export interface BatchReference {
  organisationId: string
  batchId: string
}

export interface WebhookReference {
  organisationId: string
  webhookId: string
}

export interface OperationReference extends JobReference {
  type: 'ModuleInstall' | 'ModuleUninstall' | 'PlatformUpdate' | 'PlatformRollback'
}

export const enqueueBatch = ({ organisationId, batchId }: BatchReference): Promise<void> =>
  enqueue(config.PLAT_QUEUE_BATCHES, { organisationId, batchId })

/**
 * The queues are separate, because only the install worker reads module images and only the update worker may replace
 * the platform's code.
 */
const operationQueueUrls: Record<OperationReference['type'], string> = {
  ModuleInstall: config.PLAT_QUEUE_INSTALLS,
  ModuleUninstall: config.PLAT_QUEUE_INSTALLS,
  PlatformUpdate: config.PLAT_QUEUE_UPDATES,
  PlatformRollback: config.PLAT_QUEUE_UPDATES,
}

export const enqueueOperation = (
  { organisationId, jobId, type }: OperationReference,
  delaySeconds = 0,
): Promise<void> => enqueue(operationQueueUrls[type], { organisationId, jobId }, delaySeconds)

export const enqueueCatalogScan = (organisationId: string): Promise<void> =>
  enqueue(config.PLAT_QUEUE_INSTALLS, { organisationId, scan: 'catalog' })

export const enqueueModuleDelivery = (organisationId: string, moduleId: string, delaySeconds = 0): Promise<void> =>
  enqueue(config.PLAT_QUEUE_MODULES, { organisationId, moduleId }, delaySeconds, moduleId)

const secondMs = 1000
/** In each second, a process sends at most this number of messages about an organisation without a delay. */
const immediateMessagesPerSecond = 3
/** Changes in the last moments of a delay do not rely on the message, which may arrive early. */
const safetyMarginMs = 100

interface SentMessages {
  secondStart: Times
  /** Number of messages that were requested without a delay since then. */
  immediateCount: number
  delayed?: { sentAt: Times; delayMs: number }
}

const sentMessages = new BoundedCache<SentMessages>(10_000)

function sentMessagesOf(organisationId: string): SentMessages {
  const sent = sentMessages.get(organisationId) ?? { secondStart: currentTimes(), immediateCount: 0 }
  if (!isRecent(sent.secondStart, secondMs)) Object.assign(sent, { secondStart: currentTimes(), immediateCount: 0 })
  sentMessages.set(organisationId, sent)
  return sent
}

/** Whether a delayed message of this process will arrive within about `limitMs`. Its run reads all changes. */
function willArrive({ delayed }: SentMessages, limitMs: number): boolean {
  if (delayed === undefined) return false
  const { sentAt, delayMs } = delayed
  return isRecent(sentAt, delayMs - safetyMarginMs) && sentAt.atElapsedMs + delayMs <= elapsedMs() + limitMs
}

/**
 * Enqueues a run of the projections. Under frequent changes, the run starts after a delay and projects the changes made
 * during the delay together. Calls while a message for the same organisation is being sent share the next message.
 */
const projectionSender = (minDelaySeconds: number) => {
  const send = async (organisationId: string) => {
    const sent = sentMessagesOf(organisationId)
    const isImmediate = minDelaySeconds === 0 && ++sent.immediateCount <= immediateMessagesPerSecond
    const delaySeconds = isImmediate ? 0 : Math.max(minDelaySeconds, sharedDelaySeconds)
    if (!isImmediate && willArrive(sent, delaySeconds * 1000)) return
    const sentAt = currentTimes()
    const isSent = await trySend(config.PLAT_QUEUE_EVENTS, { organisationId }, delaySeconds)
    if (isSent && !isImmediate) sent.delayed = { sentAt, delayMs: delaySeconds * 1000 }
  }
  return singleFlight(send, send)
}

export const enqueueProjections = projectionSender(0)
/** Another change usually follows within the delay, and one run then projects both. */
export const enqueueProjectionsSoon = projectionSender(coalescingDelaySeconds)

/**
 * Enqueues jobs that were claimed or have ended. The delay lets the consumer record the start and the end of a short
 * job together, and several jobs in one transaction (`jobs/recording.ts`). `hasLongDelay` is for jobs whose end is
 * recorded by the request that reports it. Returns whether the message was sent.
 */
export const enqueueRecording = (
  organisationId: string,
  jobIds: readonly string[],
  { hasLongDelay }: { hasLongDelay: boolean },
): Promise<boolean> =>
  trySend(
    config.PLAT_QUEUE_EVENTS,
    { organisationId, jobs: jobIds.join(',') },
    hasLongDelay ? coalescingDelaySeconds : recordingDelaySeconds,
  )

export const enqueueClusterSweep = (delaySeconds: number): Promise<void> =>
  enqueue(config.PLAT_QUEUE_EVENTS, { organisationId: 'platform', sweep: 'clusters' }, delaySeconds)

/** `delaySeconds` is at most 900, the limit of SQS. */
export const enqueueWebhook = ({ organisationId, webhookId }: WebhookReference, delaySeconds = 0): Promise<void> =>
  enqueue(config.PLAT_QUEUE_WEBHOOKS, { organisationId, webhookId }, delaySeconds)

/** Errors are only logged, because almost all work is stored and enqueued again later. */
async function enqueue(...args: Parameters<typeof trySend>): Promise<void> {
  await trySend(...args)
}

/** Each organisation or module is a message group of its own, so that a burst of one does not delay the others. */
async function trySend(
  QueueUrl: string,
  message: { organisationId: string } & Record<string, string>,
  DelaySeconds = 0,
  MessageGroupId = message.organisationId,
): Promise<boolean> {
  const body = { QueueUrl, MessageBody: JSON.stringify(message), MessageGroupId }
  try {
    await client.send(new SendMessageCommand({ ...body, ...(DelaySeconds > 0 && { DelaySeconds }) }))
    return true
  } catch (error) {
    log('warn', 'Cannot send a message to a queue', { ...message, error: String(error) })
    return false
  }
}
