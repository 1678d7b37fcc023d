import { type QueuePollerOptions, startQueuePoller } from '@platform/local/events/poller'
import type { SqsBatchResponse, SqsEvent, SqsRecord } from '@platform/local/events/sqs-event'
import { onTestFinished } from 'vitest'
import type { TestQueue } from '../emulators/sqs/support.ts'

/** Starts a pump that stops with the test at the latest. */
export async function pumpOf(
  queue: TestQueue,
  invoke: (event: SqsEvent) => Promise<SqsBatchResponse | null | void>,
  more: Partial<QueuePollerOptions> = {},
) {
  const pump = startQueuePoller({
    client: queue.client,
    queueUrl: queue.url,
    queueArn: await queue.arn(),
    batchSize: 10,
    maximumConcurrency: 2,
    visibilityTimeoutSeconds: 600,
    invoke,
    log: () => undefined,
    ...more,
  })
  onTestFinished(() => pump.stop())
  return pump
}

/** A handler that remembers what it was given, and answers as told. */
export function recorder(
  answer: (records: SqsRecord[]) => Promise<SqsBatchResponse> | SqsBatchResponse | void = () => undefined,
) {
  const batches: SqsRecord[][] = []
  const invoke = async ({ Records: records }: SqsEvent) => {
    batches.push(records)
    return answer(records)
  }
  const bodies = () => batches.flat().map((record) => record.body)
  return { batches, bodies, invoke }
}

/** Ends the visibility timeout of messages early. */
export const giveBack = (queue: TestQueue, records: SqsRecord[] = []) =>
  Promise.all(records.map((record) => queue.changeVisibility(record.receiptHandle, 0)))

/** A promise that the test resolves. */
export function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

/** Messages that a queue holds, waiting or in flight. */
export async function depth(queue: TestQueue): Promise<number> {
  const counts = await queue.attributes()
  return Number(counts['ApproximateNumberOfMessages']) + Number(counts['ApproximateNumberOfMessagesNotVisible'])
}
