import { setTimeout as delay } from 'node:timers/promises'
import type { DeleteMessageBatchCommandOutput, Message } from '@aws-sdk/client-sqs'
import type { CallOperation } from '../emulators/port.ts'

export type PollerLog = (message: string, details: Record<string, unknown>) => void

export interface PolledQueue {
  call: CallOperation
  queueUrl: string
  visibilityTimeoutSeconds: number
  log: PollerLog
}

/** SQS receives or deletes at most this number of messages in one call. */
export const maxMessagesPerCall = 10
/** Longest time that SQS lets a receive call wait. */
const maxWaitSeconds = 20

const firstRetryDelayMs = 100
const maxRetryDelayMs = 10_000

/** Waits for the first message. Returns an empty list on a timeout, an error or a stop. */
export type Receive = (count: number) => Promise<Message[]>

/** The returned function never rejects: it logs an error, and waits before it returns an empty list. */
export function createMessageReceiver(
  { call, queueUrl, visibilityTimeoutSeconds, log }: PolledQueue,
  stopSignal: AbortSignal,
): Receive {
  let consecutiveErrorCount = 0
  return async (count) => {
    const input = {
      QueueUrl: queueUrl,
      MaxNumberOfMessages: count,
      WaitTimeSeconds: maxWaitSeconds,
      VisibilityTimeout: visibilityTimeoutSeconds,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    }
    try {
      const { Messages: messages = [] } = await call('AmazonSQS.ReceiveMessage', input, stopSignal)
      consecutiveErrorCount = 0
      return messages
    } catch (error) {
      if (stopSignal.aborted) return []
      const delayMs = retryDelayMs(consecutiveErrorCount++)
      log('failed to receive messages', { queueUrl, retryMs: delayMs, error })
      await delay(delayMs, undefined, { signal: stopSignal }).catch(() => undefined)
      return []
    }
  }
}

/** Logs failures. SQS delivers a message again if it was not deleted. */
export async function deleteMessages(
  { call, queueUrl, log }: PolledQueue,
  messages: readonly Message[],
): Promise<void> {
  for (let start = 0; start < messages.length; start += maxMessagesPerCall) {
    const entries = messages.slice(start, start + maxMessagesPerCall).map(({ ReceiptHandle }, index) => ({
      Id: String(index),
      ReceiptHandle,
    }))
    try {
      const input = { QueueUrl: queueUrl, Entries: entries }
      const output: DeleteMessageBatchCommandOutput = await call('AmazonSQS.DeleteMessageBatch', input)
      if (output.Failed?.length) log('failed to delete messages', { queueUrl, failed: output.Failed })
    } catch (error) {
      log('failed to delete messages', { queueUrl, error })
    }
  }
}

/** Returns a random delay. Its limit doubles with every consecutive error, up to `maxRetryDelayMs`. */
function retryDelayMs(consecutiveErrorCount: number): number {
  return Math.random() * Math.min(maxRetryDelayMs, firstRetryDelayMs * 2 ** consecutiveErrorCount)
}
