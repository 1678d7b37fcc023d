import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { type Task, tasks } from '@platform/contract/task'
import { type QueuePoller, startQueuePoller } from '@platform/local/events/poller'
import type { SqsBatchResponse, SqsEvent } from '@platform/local/events/sqs-event'
import { handler as batches } from '../../../functions/queue/batches.ts'
import { handler as events } from '../../../functions/queue/events.ts'
import { seededRandom } from '../../support/random.ts'
import { sqsCalls } from '../../support/sqs-calls.ts'

// A process that consumes queues with the platform's functions and the concurrency of the deployment. It sends some
// messages again, with a delay of up to three seconds. It replies to each IPC message with its counts; for the message
// `stop`, it first stops consuming.

const consumers = { batches, events }
type Queue = keyof typeof consumers

const resendRate = 0.05

export interface Handled extends Record<Queue, number> {
  failed: number
  /** Sent again by this process after a success. */
  resent: number
  /** Received again from the queue after a success. */
  redelivered: number
}

const handledCounts: Handled = { batches: 0, events: 0, failed: 0, resent: 0, redelivered: 0 }
const random = seededRandom(Number(process.argv[2]))
const succeededIds = new Set<string>()
const client = new SQSClient()

const urlOf = (queue: Queue): string => process.env[`PLAT_QUEUE_${queue.toUpperCase()}`] ?? ''

async function invoke(queue: Queue, event: SqsEvent): Promise<SqsBatchResponse> {
  const result = await consumers[queue](event)
  if (!('batchItemFailures' in result)) throw new Error(`The function of ${queue} returned no batch response.`)
  const failedMessageIds = new Set(result.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
  handledCounts[queue] += event.Records.length
  handledCounts.failed += failedMessageIds.size
  handledCounts.redelivered += event.Records.filter(({ messageId }) => succeededIds.has(messageId)).length
  for (const { messageId, body } of event.Records.filter((record) => !failedMessageIds.has(record.messageId))) {
    succeededIds.add(messageId)
    if (random() >= resendRate) continue
    handledCounts.resent++
    const DelaySeconds = Math.floor(random() * 4)
    await client.send(new SendMessageCommand({ QueueUrl: urlOf(queue), MessageBody: body, DelaySeconds }))
  }
  return result
}

function startPoller(queue: Queue): QueuePoller {
  const { trigger }: Task = tasks[`queue/${queue}`]
  if (typeof trigger !== 'object' || !('queue' in trigger)) throw new Error(`No function consumes ${queue}.`)
  return startQueuePoller({
    call: sqsCalls(client),
    queueUrl: urlOf(queue),
    queueArn: `arn:aws:sqs:eu-central-1:000000000000:${queue}`,
    batchSize: trigger.batchSize,
    maximumConcurrency: trigger.maximumConcurrency,
    visibilityTimeoutSeconds: 20,
    invoke: (event) => invoke(queue, event),
    log: () => undefined,
  })
}

const pollers = (['batches', 'events'] as const).map(startPoller)
process.on('message', (message) => {
  const stopping = message === 'stop' ? Promise.all(pollers.map((poller) => poller.stop())) : undefined
  void Promise.resolve(stopping).then(() => process.send?.(handledCounts))
})
process.on('disconnect', () => process.exit())
