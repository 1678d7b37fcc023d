import { setTimeout as delay } from 'node:timers/promises'
import type { Message } from '@aws-sdk/client-sqs'
import { failedIds, type SqsBatchResponse, type SqsEvent, sqsEvent } from './sqs-event.ts'
import { createMessageReceiver, deleteMessages, maxMessagesPerCall, type PolledQueue } from './polled-queue.ts'

/** `batchSize` and `maximumConcurrency` have the same meaning as in Lambda's event source mappings. */
export interface QueuePollerOptions extends PolledQueue {
  queueArn: string
  /** At most 10, the maximum of one receive call. Lambda allows more only with a batching window. */
  batchSize: number
  maximumConcurrency: number
  /**
   * Handles a batch. Messages that the response reports as failed are delivered again after the visibility timeout. If
   * the call rejects, all messages of the batch are delivered again.
   */
  invoke(event: SqsEvent): Promise<SqsBatchResponse | null | void>
}

export interface QueuePoller {
  /** Receives no more messages; resolves when running batches are handled and deleted. */
  stop(): Promise<void>
}

/** While a batch runs, messages wait at most this long, so that the next batch contains several of them. */
const maxWaitMs = 50

/** Receives messages and delivers them at least once, until the poller is stopped. */
export function startQueuePoller(options: QueuePollerOptions): QueuePoller {
  const { batchSize, maximumConcurrency } = options
  if (batchSize > maxMessagesPerCall) throw new RangeError('A batch size above 10 needs a batching window.')
  const stopController = new AbortController()
  const receive = createMessageReceiver(options, stopController.signal)
  const runningBatches = new Set<Promise<void>>()

  const run = async () => {
    while (!stopController.signal.aborted) {
      const messages = await receive(batchSize)
      if (messages.length === 0) continue
      const batch = handleBatch(options, messages).finally(() => runningBatches.delete(batch))
      runningBatches.add(batch)
      if (runningBatches.size >= maximumConcurrency) await Promise.race(runningBatches)
      else if (messages.length < batchSize) await Promise.race([...runningBatches, delay(maxWaitMs)])
    }
    await Promise.all(runningBatches)
  }
  const runEnd = run()
  return {
    stop: () => {
      stopController.abort()
      return runEnd
    },
  }
}

async function handleBatch(options: QueuePollerOptions, messages: readonly Message[]): Promise<void> {
  const failedMessageIds = await invokeBatch(options, messages)
  await deleteMessages(
    options,
    messages.filter((message) => !failedMessageIds.has(message.MessageId ?? '')),
  )
}

async function invokeBatch({ queueArn, log, ...options }: QueuePollerOptions, messages: readonly Message[]) {
  try {
    const failedMessageIds = failedIds(await options.invoke(sqsEvent(messages, queueArn)), messages)
    if (failedMessageIds.size > 0) log('messages failed', { queueArn, messageIds: [...failedMessageIds] })
    return failedMessageIds
  } catch (error) {
    log('a batch failed', { queueArn, error })
    return new Set(messages.map((message) => message.MessageId ?? ''))
  }
}
