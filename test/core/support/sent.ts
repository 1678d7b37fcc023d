import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { vi } from 'vitest'

/** What is sent to a queue meanwhile, for now or for later: the bodies of its messages. */
export async function sentWhile(queueUrl: string, work: () => Promise<unknown>): Promise<any[]> {
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
