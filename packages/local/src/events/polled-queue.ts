import { setTimeout as delay } from 'node:timers/promises'
import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs'

/** Called for everything that an operator may want to know of. */
export type PollerLog = (message: string, details: Record<string, unknown>) => void

/** The queue that a pump empties. */
export interface PolledQueue {
  client: SQSClient
  queueUrl: string
  visibilityTimeoutSeconds: number
  log: PollerLog
}

/** The most that SQS hands over or deletes in one call. */
export const maximumMessagesPerCall = 10
/** The longest that SQS lets a call wait for messages. */
const maximumWaitSeconds = 20

const firstRetryMs = 100
const longestRetryMs = 10_000

/** Receives up to ten messages, waiting for the first; an empty list when there were none, after a failure or at stop. */
export type Receive = (count: number) => Promise<Message[]>

/** A receiver that never fails: it logs, and pauses longer after each failure in a row. */
export function createReceive(
  { client, queueUrl, visibilityTimeoutSeconds, log }: PolledQueue,
  stopping: AbortSignal,
): Receive {
  let failuresInARow = 0
  return async (count) => {
    const command = new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: count,
      WaitTimeSeconds: maximumWaitSeconds,
      VisibilityTimeout: visibilityTimeoutSeconds,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    })
    try {
      const { Messages: messages = [] } = await client.send(command, { abortSignal: stopping })
      failuresInARow = 0
      return messages
    } catch (error) {
      if (stopping.aborted) return []
      const retryMs = fullJitterMs(failuresInARow++)
      log('receiving failed', { queueUrl, retryMs, error })
      await delay(retryMs, undefined, { signal: stopping }).catch(() => undefined)
      return []
    }
  }
}

/** Deletes messages; one that could not be deleted comes again. */
export async function deleteMessages(
  { client, queueUrl, log }: PolledQueue,
  messages: readonly Message[],
): Promise<void> {
  for (let start = 0; start < messages.length; start += maximumMessagesPerCall) {
    const entries = messages.slice(start, start + maximumMessagesPerCall).map(({ ReceiptHandle }, index) => ({
      Id: String(index),
      ReceiptHandle,
    }))
    try {
      const output = await client.send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries: entries }))
      if (output.Failed?.length) log('deleting failed', { queueUrl, failed: output.Failed })
    } catch (error) {
      log('deleting failed', { queueUrl, error })
    }
  }
}

/** A random share of a time that doubles with every failure, so that many clients do not come back at once. */
function fullJitterMs(failuresInARow: number): number {
  return Math.random() * Math.min(longestRetryMs, firstRetryMs * 2 ** failuresInARow)
}
