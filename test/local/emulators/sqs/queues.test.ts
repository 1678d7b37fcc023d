import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { CreateQueueCommand, GetQueueUrlCommand, QueueDoesNotExist, QueueNameExists } from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { countCalls, poll, serveQueue, serveSqs, sqsClient, temporaryDir, TestQueue } from './support.ts'

test('creating an existing queue returns it', async () => {
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

test('rejects a queue of the same name with other attributes, and a FIFO queue', async () => {
  const { client } = await serveSqs()
  await client.send(new CreateQueueCommand({ QueueName: 'other', Attributes: { VisibilityTimeout: '2' } }))
  const changed = new CreateQueueCommand({ QueueName: 'other', Attributes: { VisibilityTimeout: '9' } })
  await expect(client.send(changed)).rejects.toBeInstanceOf(QueueNameExists)
  const fifo = new CreateQueueCommand({ QueueName: 'jobs.fifo', Attributes: { FifoQueue: 'true' } })
  await expect(client.send(fifo)).rejects.toMatchObject({ name: 'InvalidParameterValue' })
})

test('rejects calls of a missing queue', async () => {
  const { sqs, client } = await serveSqs()
  const missing = new TestQueue(client, `${sqs.url}/000000000000/missing`)
  await expect(client.send(new GetQueueUrlCommand({ QueueName: 'missing' }))).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missing.send('body')).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missing.receive()).rejects.toBeInstanceOf(QueueDoesNotExist)
})

const entry = (id: number, body = 'body') => ({ Id: `entry-${id}`, MessageBody: body })
const entries = (count: number) => Array.from({ length: count }, (_, id) => entry(id))

test.each<[string, (queue: TestQueue) => Promise<unknown>, string]>([
  ['a body with U+FFFF', (queue) => queue.send('a\uFFFFb'), 'InvalidMessageContents'],
  ['a body with a lone surrogate', (queue) => queue.send('a\uD83D'), 'InvalidMessageContents'],
  [
    'an attribute with a forbidden character',
    (queue) => queue.send('body', { MessageAttributes: { a: { DataType: 'String', StringValue: '\uFFFF' } } }),
    'InvalidMessageContents',
  ],
  ['a body over 1 MiB', (queue) => queue.send('x'.repeat(1024 * 1024 + 1)), 'InvalidParameterValue'],
  ['a delay over 15 minutes', (queue) => queue.send('body', { DelaySeconds: 901 }), 'InvalidParameterValue'],
  ['a wait over 20 seconds', (queue) => queue.receive({ WaitTimeSeconds: 21 }), 'InvalidParameterValue'],
  ['an unknown receipt handle', (queue) => queue.delete('bogus'), 'ReceiptHandleIsInvalid'],
  ['an empty batch', (queue) => queue.sendBatch([]), 'EmptyBatchRequest'],
  ['two entries with one id', (queue) => queue.sendBatch([entry(1), entry(1)]), 'BatchEntryIdsNotDistinct'],
  [
    'more than 1 MiB in a batch',
    (queue) => queue.sendBatch([1, 2, 3].map((id) => entry(id, 'x'.repeat(400_000)))),
    'BatchRequestTooLong',
  ],
  [
    'eleven entries, one of them invalid',
    (queue) => queue.sendBatch([...entries(10), entry(10, '\u0001')]),
    'TooManyEntriesInBatchRequest',
  ],
])('rejects %s', async (_, call, name) => {
  const { queue } = await serveQueue()
  await expect(call(queue)).rejects.toMatchObject({ name: expect.stringContaining(name) })
})

test('an invalid entry does not fail the rest of its batch', async () => {
  const { queue } = await serveQueue()
  const output = await queue.sendBatch([entry(0), entry(1, 'a\uFFFFb'), { ...entry(2), DelaySeconds: 901 }])
  expect(output.Successful).toMatchObject([{ Id: 'entry-0' }])
  expect(output.Failed).toMatchObject([
    { Id: 'entry-1', Code: 'InvalidMessageContents', SenderFault: true },
    { Id: 'entry-2', Code: 'InvalidParameterValue', SenderFault: true },
  ])
  expect(await queue.receive()).toHaveLength(1)
  const deletions = await queue.deleteBatch(['bogus'])
  expect(deletions.Failed).toMatchObject([{ Id: 'entry-0', Code: 'ReceiptHandleIsInvalid' }])
})

test('counts calls by action', async () => {
  const { sqs, queue } = await serveQueue()
  await queue.send('one')
  await queue.send('two')
  expect(await (await fetch(`${sqs.url}/_metrics`)).json()).toEqual({ CreateQueue: 1, SendMessage: 2 })
})

test('closing ends long polls, and accepts no more calls', { timeout: 10_000 }, async () => {
  const { sqs, queue } = await serveQueue()
  const waiting = queue.await()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  await Promise.all([sqs.close(), sqs.close()])
  expect(await waiting).toEqual([])
  await expect(fetch(sqs.url)).rejects.toThrow('fetch failed')
})

test('closing ends idle connections', { timeout: 10_000 }, async () => {
  const { sqs } = await serveSqs()
  const silent = connect(Number(new URL(sqs.url).port), '127.0.0.1')
  await once(silent, 'connect')
  await fetch(`${sqs.url}/_metrics`)
  await Promise.all([once(silent, 'close'), sqs.close()])
})

test('a queue keeps the path of its URL after a restart on another port', async () => {
  const dataDir = await temporaryDir()
  const first = await serveSqs({ dataDir })
  const queue = await TestQueue.create(first.client)
  await first.sqs.close()
  const second = await serveSqs({ dataDir })
  const { pathname } = new URL(queue.url)
  const command = new GetQueueUrlCommand({ QueueName: pathname.split('/').at(-1) })
  expect(await second.client.send(command)).toMatchObject({ QueueUrl: `${second.sqs.url}${pathname}` })
})

test('rejects other host names, as in DNS rebinding', async () => {
  const { sqs } = await serveSqs()
  const foreign = request(`${sqs.url}/_metrics`, { headers: { host: 'attacker.example' } }).end()
  const [response] = await once(foreign, 'response')
  response.resume()
  expect(response.statusCode).toBe(403)
})

test('rejects requests signed with another access key', async () => {
  const { sqs } = await serveSqs({ accessKeyId: 'the-key' })
  const otherClient = sqsClient(sqs.url, { accessKeyId: 'another-key' })
  await expect(TestQueue.create(otherClient)).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  const owner = sqsClient(sqs.url, { accessKeyId: 'the-key' })
  await expect(TestQueue.create(owner)).resolves.toBeDefined()
})
