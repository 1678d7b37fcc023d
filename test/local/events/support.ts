import { type QueuePollerOptions, startQueuePoller } from '@platform/local/events/poller'
import { type SqsBatchResponse, type SqsEvent, type SqsRecord } from '@platform/local/events/sqs-event'
import { onTestFinished } from 'vitest'
import { type TestQueue } from '../emulators/sqs/support.ts'

/** Starts a poller; it stops after the test. */
export async function startPoller(
  queue: TestQueue,
  invoke: (event: SqsEvent) => Promise<SqsBatchResponse | null | void>,
  more: Partial<QueuePollerOptions> = {},
) {
  const poller = startQueuePoller({
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
  onTestFinished(() => poller.stop())
  return poller
}

/** A handler that records its batches. */
export function recorder(
  respond: (records: SqsRecord[]) => Promise<SqsBatchResponse> | SqsBatchResponse | void = () => undefined,
) {
  const batches: SqsRecord[][] = []
  const invoke = async ({ Records: records }: SqsEvent) => {
    batches.push(records)
    return respond(records)
  }
  const bodies = () => batches.flat().map((record) => record.body)
  return { batches, bodies, invoke }
}

/** Makes messages visible again. */
export const releaseMessages = (queue: TestQueue, records: SqsRecord[] = []) =>
  Promise.all(records.map((record) => queue.changeVisibility(record.receiptHandle, 0)))

/** A promise that the test resolves. */
export function latch() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

/** The number of waiting and in-flight messages. */
export async function depth(queue: TestQueue): Promise<number> {
  const counts = await queue.attributes()
  return Number(counts['ApproximateNumberOfMessages']) + Number(counts['ApproximateNumberOfMessagesNotVisible'])
}
