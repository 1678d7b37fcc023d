import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs'

const client = new SQSClient()

/** Takes all messages that a queue holds, and answers their bodies. */
export async function takeMessages(QueueUrl: string): Promise<unknown[]> {
  const bodies: unknown[] = []
  for (;;) {
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }))
    if (Messages.length === 0) return bodies
    for (const { Body = '', ReceiptHandle } of Messages) {
      bodies.push(JSON.parse(Body))
      await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
    }
  }
}
