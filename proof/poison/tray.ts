import { randomUUID } from 'node:crypto'
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { failedIds, type SqsBatchResponse, type SqsEvent, sqsEvent } from '@platform/local/events/sqs-event'

/** A queue of ten messages, handed out as Lambda does: what fails comes again at once, and is buried after five receives. */

const client = new SQSClient()
const maxReceiveCount = 5

/** What consumes a queue. */
export type Consumer = (event: SqsEvent) => Promise<SqsBatchResponse>

/** What became of messages. */
export interface Worked {
  /** The bodies of each event that the consumer was handed. */
  events: string[][]
  /** The bodies of the messages that lie in the dead-letter queue. */
  buried: string[]
}

async function queueOf(name: string, attributes: Record<string, string> = {}) {
  const { QueueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }))
  const asked = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] })
  return { url: QueueUrl, arn: (await client.send(asked)).Attributes?.['QueueArn'] ?? '' }
}

/** Puts messages into a queue of their own and hands them out, ten at once, until none is left or all that are left are buried. */
export async function workOff(bodies: readonly string[], consumer: Consumer): Promise<Worked> {
  const name = randomUUID()
  const deadLetters = await queueOf(`${name}-dead-letter`)
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: deadLetters.arn, maxReceiveCount })
  const { url: QueueUrl, arn } = await queueOf(name, { RedrivePolicy })
  const Entries = bodies.map((MessageBody, index) => ({ Id: String(index), MessageBody }))
  await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
  const events: string[][] = []
  for (;;) {
    const messages = await receive(QueueUrl)
    if (messages.length === 0) break
    events.push(messages.map(({ Body = '' }) => Body))
    const failed = failedIds(await consumer(sqsEvent(messages, arn)), messages)
    await Promise.all(messages.map((message) => settle(QueueUrl, message, failed.has(message.MessageId ?? ''))))
  }
  return { events, buried: (await receive(deadLetters.url)).map(({ Body = '' }) => Body) }
}

async function receive(QueueUrl: string): Promise<Message[]> {
  const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }))
  return Messages
}

async function settle(QueueUrl: string, { ReceiptHandle }: Message, hasFailed: boolean): Promise<void> {
  if (hasFailed) {
    await client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }))
  } else {
    await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
  }
}
