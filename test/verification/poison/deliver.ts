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

const client = new SQSClient()
export const maxReceiveCount = 5

export type QueueHandler = (event: SqsEvent) => Promise<SqsBatchResponse>

async function createQueue(name: string, attributes: Record<string, string> = {}) {
  const { QueueUrl = '' } = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }))
  const query = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] })
  return { url: QueueUrl, arn: (await client.send(query)).Attributes?.['QueueArn'] ?? '' }
}

async function receive(QueueUrl: string): Promise<Message[]> {
  const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }))
  return Messages
}

/**
 * Delivers up to ten messages as Lambda does, from a new queue. Failed messages are delivered again at once, until they
 * succeed or are in the dead-letter queue. Returns the bodies of each event and of the dead letters.
 */
export async function deliver(bodies: readonly string[], handler: QueueHandler) {
  const name = randomUUID()
  const deadLetterQueue = await createQueue(`${name}-dead-letter`)
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: deadLetterQueue.arn, maxReceiveCount })
  const { url: QueueUrl, arn } = await createQueue(name, { RedrivePolicy })
  const Entries = bodies.map((MessageBody, index) => ({ Id: String(index), MessageBody }))
  await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
  const events: string[][] = []
  for (let messages = await receive(QueueUrl); messages.length > 0; messages = await receive(QueueUrl)) {
    events.push(messages.map(({ Body = '' }) => Body))
    const failedMessageIds = failedIds(await handler(sqsEvent(messages, arn)), messages)
    for (const { ReceiptHandle, MessageId = '' } of messages) {
      if (!failedMessageIds.has(MessageId)) await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
      else await client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 }))
    }
  }
  return { events, deadLetters: (await receive(deadLetterQueue.url)).map(({ Body = '' }) => Body) }
}
