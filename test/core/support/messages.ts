import { DeleteMessageCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { vi } from 'vitest'

const client = new SQSClient()

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

/** Returns the bodies of the messages that the work sends to a queue with `SendMessage`, including delayed ones. */
export const messagesSentBy = async (queueUrl: string, work: () => Promise<unknown>): Promise<any[]> =>
  (await sendsOf(queueUrl, work)).map(({ MessageBody = '' }) => JSON.parse(MessageBody))

/** Returns the delays of the messages that the work sends to a queue. */
export const delaysOfMessages = async (queueUrl: string, work: () => Promise<unknown>): Promise<number[]> =>
  (await sendsOf(queueUrl, work)).map(({ DelaySeconds = 0 }) => DelaySeconds)

async function sendsOf(queueUrl: string, work: () => Promise<unknown>) {
  const send = vi.spyOn(SQSClient.prototype, 'send')
  try {
    await work()
    const commands = send.mock.calls.map(([command]) => command)
    const inputs = commands.filter((command) => command instanceof SendMessageCommand).map(({ input }) => input)
    return inputs.filter(({ QueueUrl }) => QueueUrl === queueUrl)
  } finally {
    send.mockRestore()
  }
}
