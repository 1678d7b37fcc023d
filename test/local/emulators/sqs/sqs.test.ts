import { once } from 'node:events'
import { request } from 'node:http'
import { Socket } from 'node:net'
import { CreateQueueCommand, GetQueueUrlCommand, type Message, QueueDoesNotExist } from '@aws-sdk/client-sqs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runServer } from '../../support/program.ts'
import { countCalls, poll, serveQueue, serveSqs, sqsClient, temporaryDir, TestQueue } from './support.ts'

test('creating an existing queue returns it', async () => {
  const { client } = await serveSqs()
  const command = new CreateQueueCommand({ QueueName: 'jobs', Attributes: { VisibilityTimeout: '70' } })
  const reply = await client.send(command)
  expect(await client.send(command)).toMatchObject({ QueueUrl: reply.QueueUrl })
  expect(await client.send(new GetQueueUrlCommand({ QueueName: 'jobs' }))).toMatchObject({ QueueUrl: reply.QueueUrl })
  expect(await new TestQueue(client, reply.QueueUrl!).attributes()).toMatchObject({
    VisibilityTimeout: '70',
    QueueArn: 'arn:aws:sqs:eu-central-1:000000000000:jobs',
  })
})

test('rejects calls of a missing queue', async () => {
  const { sqs, client } = await serveSqs()
  const missingQueue = new TestQueue(client, `${sqs.url}/000000000000/missing`)
  await expect(client.send(new GetQueueUrlCommand({ QueueName: 'missing' }))).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missingQueue.send('body')).rejects.toBeInstanceOf(QueueDoesNotExist)
  await expect(missingQueue.receive()).rejects.toBeInstanceOf(QueueDoesNotExist)
})

test.each<[string, (queue: TestQueue) => Promise<unknown>, string]>([
  ['a body with U+FFFF', (queue) => queue.send('a\uFFFFb'), 'InvalidMessageContents'],
  ['a body over 1 MiB', (queue) => queue.send('x'.repeat(1024 * 1024 + 1)), 'InvalidParameterValue'],
  ['a delay over 15 minutes', (queue) => queue.send('body', { DelaySeconds: 901 }), 'InvalidParameterValue'],
  ['an unknown receipt handle', (queue) => queue.delete('bogus'), 'ReceiptHandleIsInvalid'],
])('rejects %s', async (_, call, name) => {
  const { queue } = await serveQueue()
  await expect(call(queue)).rejects.toMatchObject({ name: expect.stringContaining(name) })
})

test('closing ends long polls, and accepts no more calls', { timeout: 10_000 }, async () => {
  const { sqs, queue } = await serveQueue()
  const waitPromise = queue.await()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  await Promise.all([sqs.close(), sqs.close()])
  expect(await waitPromise).toEqual([])
  await expect(fetch(sqs.url)).rejects.toThrow('fetch failed')
})

test('delayed and unacknowledged messages return in time after the clock was set back', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { queue } = await serveQueue({ VisibilityTimeout: '60' })
  await queue.send('unacknowledged')
  expect(await queue.receive()).toHaveLength(1)
  await queue.send('delayed', { DelaySeconds: 60 })
  vi.setSystemTime(Date.now() - 30 * 60_000)
  expect(await queue.receive()).toEqual([])
  vi.setSystemTime(Date.now() + 61_000)
  const bodies = new Set((await queue.receive()).map(({ Body }) => Body))
  expect(bodies).toEqual(new Set(['delayed', 'unacknowledged']))
})

test('a queue keeps the path of its URL after a restart on another port', async () => {
  const dataDir = await temporaryDir()
  const firstServer = await serveSqs({ dataDir })
  const queue = await TestQueue.create(firstServer.client)
  await firstServer.sqs.close()
  const secondServer = await serveSqs({ dataDir })
  const { pathname } = new URL(queue.url)
  const command = new GetQueueUrlCommand({ QueueName: pathname.split('/').at(-1) })
  expect(await secondServer.client.send(command)).toMatchObject({ QueueUrl: `${secondServer.sqs.url}${pathname}` })
})

test('rejects other host names, as in DNS rebinding', async () => {
  const { sqs } = await serveSqs()
  const foreignRequest = request(`${sqs.url}/_metrics`, { headers: { host: 'attacker.example' } }).end()
  const [response] = await once(foreignRequest, 'response')
  response.resume()
  expect(response.statusCode).toBe(403)
})

test('delivers a message again after its visibility timeout, with a new receipt handle', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  const sentMessage = await queue.send('body')
  const [message] = await queue.receive()
  expect(await queue.receive()).toEqual([])
  await queue.changeVisibility(message?.ReceiptHandle, 1)
  const [redelivered] = await queue.await({ MessageSystemAttributeNames: ['ApproximateReceiveCount'] })
  expect(redelivered?.MessageId).toBe(sentMessage.MessageId)
  expect(redelivered?.ReceiptHandle).not.toBe(message?.ReceiptHandle)
  expect(redelivered?.Attributes?.['ApproximateReceiveCount']).toBe('2')
})

test('rejects an unknown receipt handle of a batch, and ignores an outdated one', async () => {
  const { queue } = await serveQueue()
  const { Failed } = await queue.deleteBatch(['bogus'])
  expect(Failed).toMatchObject([{ Id: 'entry-0', Code: 'ReceiptHandleIsInvalid', SenderFault: true }])
  await queue.send('body')
  const [message] = await queue.receive({ VisibilityTimeout: 0 })
  const [redelivered] = await queue.await()
  await queue.delete(message?.ReceiptHandle)
  await queue.changeVisibility(redelivered?.ReceiptHandle, 0)
  expect(await queue.receive()).toHaveLength(1)
})

test('eight consumers receive each of 500 messages once', async () => {
  const { queue } = await serveQueue()
  const bodies = Array.from({ length: 500 }, (_, index) => String(index))
  for (let start = 0; start < bodies.length; start += 10) {
    const entries = bodies.slice(start, start + 10).map((body) => ({ Id: body, MessageBody: body }))
    await queue.sendBatch(entries)
  }
  const receivedBodies: string[] = []
  const consume = async () => {
    for (let messages = await queue.receive(); messages.length > 0; messages = await queue.receive()) {
      receivedBodies.push(...messages.map((message) => message.Body!))
    }
  }
  await Promise.all(Array.from({ length: 8 }, consume))
  expect(receivedBodies.toSorted()).toEqual(bodies.toSorted())
})

test('an aborted long poll does not take the next message', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  const caller = new AbortController()
  const receivePromise = queue.receive({ WaitTimeSeconds: 20 }, caller.signal)
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  caller.abort()
  await expect(receivePromise).rejects.toThrow(/abort/i)
  await queue.send('body')
  expect(await queue.await()).toHaveLength(1)
})

test('a message becomes visible again when its receiver disconnects without reading', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const caller = await sendReceive(sqs.url, queue.url)
  const inFlight = async () => (await queue.attributes())['ApproximateNumberOfMessagesNotVisible']
  await poll(inFlight).toBe('1')
  caller.destroy()
  expect(await queue.await()).toHaveLength(1)
})

/** Sends ReceiveMessage over a connection that never reads. */
async function sendReceive(serverUrl: string, queueUrl: string): Promise<Socket> {
  const { hostname, port } = new URL(serverUrl)
  const body = JSON.stringify({ QueueUrl: queueUrl })
  const head = [
    'POST / HTTP/1.1',
    `Host: ${hostname}`,
    'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/sqs/aws4_request',
    'X-Amz-Target: AmazonSQS.ReceiveMessage',
    `Content-Length: ${body.length}`,
  ]
  const socket = new Socket().pause().connect(Number(port), hostname)
  const written = Promise.withResolvers<void>()
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`, () => written.resolve())
  await written.promise
  return socket
}

const sendGroup = (queue: TestQueue, group: string, count: number, DelaySeconds = 0) =>
  queue.sendBatch(
    Array.from({ length: count }, (_, index) => `${group}-${index}`).map((id) => ({
      Id: id,
      MessageBody: id,
      MessageGroupId: group,
      DelaySeconds,
    })),
  )

const receiveBodies = async (queue: TestQueue, count: number) =>
  (await queue.receive({ MaxNumberOfMessages: count })).map(({ Body }) => Body)

test.each([0, 1])('delivers a group before the rest of a large one, after a delay of %i s', async (delaySeconds) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (let part = 0; part < 3; part++) await sendGroup(queue, 'large', 10, delaySeconds)
  await sendGroup(queue, 'small', 1, delaySeconds)
  vi.setSystemTime(Date.now() + delaySeconds * 1000)
  expect(await receiveBodies(queue, 2)).toEqual(['large-0', 'small-0'])
})

test('prefers groups without messages in flight', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  await sendGroup(queue, 'large', 10)
  expect(await receiveBodies(queue, 4)).toEqual(['large-0', 'large-1', 'large-2', 'large-3'])
  await sendGroup(queue, 'small', 3)
  expect(await receiveBodies(queue, 3)).toEqual(['small-0', 'small-1', 'small-2'])
})

test('keeps the order of messages without a group, and within a group', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (const body of ['a', 'b', 'c']) await queue.send(body)
  expect(await receiveBodies(queue, 3)).toEqual(['a', 'b', 'c'])
  await sendGroup(queue, 'one', 5)
  expect(await receiveBodies(queue, 5)).toEqual(['one-0', 'one-1', 'one-2', 'one-3', 'one-4'])
})

async function startQueue() {
  const dataDir = await temporaryDir()
  const server = await runServer('sqs', dataDir)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const queue = await TestQueue.create(sqsClient(server.address), { VisibilityTimeout: '600' })
  const restart = async () => new TestQueue((await serveSqs({ dataDir })).client, queue.url)
  return { queue, kill: () => server[Symbol.asyncDispose](), restart }
}

/** Receives all remaining messages, including those that are still in flight. */
async function drain(queue: TestQueue) {
  const messages: Message[] = []
  for (;;) {
    const batch = await queue.receive()
    messages.push(...batch)
    const { ApproximateNumberOfMessagesNotVisible: inFlight } = await queue.attributes()
    if (batch.length === 0 && Number(inFlight) === messages.length) return messages
    if (batch.length === 0) messages.push(...(await queue.await()))
  }
}

async function repeatUntilError(work: () => Promise<void>) {
  for (;;) {
    try {
      await work()
    } catch {
      return
    }
  }
}

test('a kill under load loses no acknowledged message, and restores no deleted one', async () => {
  const { queue, kill, restart } = await startQueue()
  const acknowledgedIds = new Set<string>()
  const maybeDeleted = new Set<string>()
  const deletedIds = new Set<string>()
  const produce = async () => void acknowledgedIds.add((await queue.send('body')).MessageId!)
  const consume = async () => {
    const messages = await queue.receive({ WaitTimeSeconds: 1, VisibilityTimeout: 1 })
    if (messages.length === 0) return
    for (const message of messages) maybeDeleted.add(message.MessageId!)
    await queue.deleteBatch(messages.map((message) => message.ReceiptHandle))
    for (const message of messages) deletedIds.add(message.MessageId!)
  }
  const load = Promise.all([produce, produce, produce, produce, consume].map(repeatUntilError))
  await poll(() => acknowledgedIds.size).toBeGreaterThan(300)
  await kill()
  await load

  const remainingIds = new Set((await drain(await restart())).map((message) => message.MessageId!))
  expect([...acknowledgedIds].filter((id) => !remainingIds.has(id) && !maybeDeleted.has(id))).toEqual([])
  expect([...deletedIds].filter((id) => remainingIds.has(id))).toEqual([])
})

test('a kill keeps messages in flight hidden, and released ones visible', async () => {
  const { queue, kill, restart } = await startQueue()
  await queue.send('in flight')
  await queue.receive()
  await queue.send('released')
  const [message] = await queue.receive()
  await queue.changeVisibility(message?.ReceiptHandle, 0)
  await kill()

  const restartedQueue = await restart()
  expect(await restartedQueue.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '1',
    ApproximateNumberOfMessagesNotVisible: '1',
  })
  expect(await restartedQueue.receive()).toMatchObject([{ Body: 'released' }])
})
