import { GetQueueUrlCommand, ReceiveMessageCommand, SendMessageCommand } from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { startGate } from './gate.ts'
import { platformIn, queueClient, temporaryFolder } from './support.ts'

test('a message that failed five times reaches the function of the dead-letter queue', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  gate.open()
  const telling = `export const handler = async (event) => { ${gate.pass('buried', 'event')}; return {} }`
  // Nothing consumes the queue itself but this test.
  await using platform = await platformIn(folder.path, { 'queue/batches-dead-letter': telling })
  const client = queueClient(platform)
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: 'batches' }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'nobody can handle this' }))
  for (let receive = 0; receive < 6; receive++) {
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, VisibilityTimeout: 0 }))
    expect(Messages).toHaveLength(receive < 5 ? 1 : 0)
  }
  expect(await gate.arrived('buried')).toMatchObject([{ Records: [{ body: 'nobody can handle this' }] }])
  client.destroy()
})
