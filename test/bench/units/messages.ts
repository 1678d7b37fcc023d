import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { tasks } from '@platform/contract/task'
import { config } from '@platform/core/config'
import type { QueueEvent, QueueResult } from '@platform/http/consume'
import { type ProbeResponse } from '@platform/core/updates/version-probe'
import { handler as batches } from '../../../functions/queue/batches.ts'
import { handler as events } from '../../../functions/queue/events.ts'
import { handler as jobs } from '../../../functions/queue/jobs.ts'
import { handler as webhooks } from '../../../functions/queue/webhooks.ts'
import { type Flow, invoke } from './call.ts'

type Consumer = (event: QueueEvent) => Promise<QueueResult | ProbeResponse>

const queues: { name: keyof typeof tasks; url: string; batchSize: number; consume: Consumer }[] = [
  { name: 'queue/jobs', url: config.PLAT_QUEUE_JOBS, batchSize: tasks['queue/jobs'].trigger.batchSize, consume: jobs },
  { name: 'queue/batches', url: config.PLAT_QUEUE_BATCHES, batchSize: 1, consume: batches },
  {
    name: 'queue/events',
    url: config.PLAT_QUEUE_EVENTS,
    batchSize: tasks['queue/events'].trigger.batchSize,
    consume: events,
  },
  { name: 'queue/webhooks', url: config.PLAT_QUEUE_WEBHOOKS, batchSize: 1, consume: webhooks },
]

const client = new SQSClient()

/** Hands every message that waits to its consumer, as Lambda would, until none is left; adds that to a flow. */
export async function settle(flow: Flow): Promise<void> {
  for (let isQuiet = false; !isQuiet;) {
    isQuiet = true
    for (const queue of queues) {
      for (let messages = await receive(queue); messages.length > 0; messages = await receive(queue)) {
        isQuiet = false
        const Records = messages.map(({ MessageId = '', Body = '' }) => ({ messageId: MessageId, body: Body }))
        const result = await invoke(flow, queue.name, () => queue.consume({ Records }))
        if (!('batchItemFailures' in result) || result.batchItemFailures.length > 0)
          throw new Error(`${queue.name} has failed.`)
        await remove(queue.url, messages)
      }
    }
  }
}

async function receive({ url, batchSize }: { url: string; batchSize: number }): Promise<Message[]> {
  const request = new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: batchSize })
  return (await client.send(request)).Messages ?? []
}

async function remove(url: string, messages: readonly Message[]): Promise<void> {
  const Entries = messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
  await client.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries }))
}
