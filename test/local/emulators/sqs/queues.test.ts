import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ListQueueTagsCommand,
  PurgeQueueCommand,
  QueueDoesNotExist,
  QueueNameExists,
  SetQueueAttributesCommand,
  TagQueueCommand,
  UntagQueueCommand,
} from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { serveQueue, serveSqs, temporaryFolder, TestQueue } from './support.ts'

test('creating a queue again answers the same queue', async () => {
  const { client } = await serveSqs()
  const command = new CreateQueueCommand({ QueueName: 'jobs', Attributes: { VisibilityTimeout: '70' } })
  const first = await client.send(command)
  expect(await client.send(command)).toMatchObject({ QueueUrl: first.QueueUrl })
  expect(await client.send(new GetQueueUrlCommand({ QueueName: 'jobs' }))).toMatchObject({ QueueUrl: first.QueueUrl })
  expect(await new TestQueue(client, first.QueueUrl!).attributes()).toMatchObject({
    VisibilityTimeout: '70',
    QueueArn: 'arn:aws:sqs:eu-central-1:000000000000:jobs',
  })
})

test('creating a queue again with other attributes is refused', async () => {
  const { client } = await serveSqs()
  await client.send(new CreateQueueCommand({ QueueName: 'other', Attributes: { VisibilityTimeout: '2' } }))
  const again = new CreateQueueCommand({ QueueName: 'other', Attributes: { VisibilityTimeout: '9' } })
  await expect(client.send(again)).rejects.toBeInstanceOf(QueueNameExists)
})

test('a queue that does not exist is named as such', async () => {
  const { sqs, client } = await serveSqs()
  const missing = new TestQueue(client, `${sqs.url}/000000000000/missing`)
  await expect(client.send(new GetQueueUrlCommand({ QueueName: 'missing' }))).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missing.send('body')).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missing.receive()).rejects.toBeInstanceOf(QueueDoesNotExist)
})

test('a deleted queue is gone, for those who wait at it as well', async () => {
  const { queue, client } = await serveQueue()
  await queue.send('body')
  await client.send(new DeleteQueueCommand({ QueueUrl: queue.url }))
  await expect(queue.send('body')).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(queue.await()).rejects.toBeInstanceOf(QueueDoesNotExist)
})

test('attributes change while a queue is in use', async () => {
  const { queue, client } = await serveQueue()
  await client.send(new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: { VisibilityTimeout: '77' } }))
  expect(await queue.attributes()).toMatchObject({ VisibilityTimeout: '77' })
})

test('queues are listed by prefix', async () => {
  const { queue, client } = await serveQueue()
  const prefix = queue.url.split('/').at(-1)!
  const { QueueUrls } = await client.send(new ListQueuesCommand({ QueueNamePrefix: prefix }))
  expect(QueueUrls).toEqual([queue.url])
})

test('purging empties a queue', async () => {
  const { queue, client } = await serveQueue()
  await queue.send('body')
  await client.send(new PurgeQueueCommand({ QueueUrl: queue.url }))
  expect(await queue.receive()).toEqual([])
})

test('tags are kept over a restart, and changing them keeps the messages', async () => {
  const dataDir = await temporaryFolder()
  const first = await serveSqs({ dataDir })
  const queue = await TestQueue.create(first.client)
  await queue.send('body')
  await first.client.send(new TagQueueCommand({ QueueUrl: queue.url, Tags: { stage: 'dev', owner: 'me' } }))
  await first.client.send(new UntagQueueCommand({ QueueUrl: queue.url, TagKeys: ['owner'] }))
  await first.sqs.close()

  const { client } = await serveSqs({ dataDir })
  const { Tags } = await client.send(new ListQueueTagsCommand({ QueueUrl: queue.url }))
  expect(Tags).toEqual({ stage: 'dev' })
  expect(await new TestQueue(client, queue.url).receive()).toHaveLength(1)
})
