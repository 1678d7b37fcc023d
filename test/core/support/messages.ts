import { DeleteMessageCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { vi } from 'vitest'

const client = new SQSClient()

/** Takes all messages that a queue holds, and answers their bodies. */
export async function receiveMessages(QueueUrl: string): Promise<unknown[]> {
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

/** What is sent to a queue meanwhile, for now or for later: the bodies of its messages. */
export async function messagesSentBy(queueUrl: string, work: () => Promise<unknown>): Promise<any[]> {
  const send = vi.spyOn(SQSClient.prototype, 'send')
  try {
    await work()
    const commands = send.mock.calls.map(([command]) => command)
    const sent = commands.filter((command) => command instanceof SendMessageCommand).map(({ input }) => input)
    return sent.filter(({ QueueUrl }) => QueueUrl === queueUrl).map(({ MessageBody = '' }) => JSON.parse(MessageBody))
  } finally {
    send.mockRestore()
  }
}
