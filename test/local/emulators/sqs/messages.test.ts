import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { countCalls, serveQueue, TestQueue, poll } from './support.ts'

test('a message arrives with its body, attributes and system attributes', async () => {
  const { queue } = await serveQueue()
  const sent = await queue.send('héllo 🚀', {
    MessageAttributes: {
      text: { DataType: 'String', StringValue: 'value' },
      bytes: { DataType: 'Binary', BinaryValue: new Uint8Array([1, 2]) },
    },
  })
  const [message] = await queue.receive({ MessageAttributeNames: ['All'], MessageSystemAttributeNames: ['All'] })
  expect(message).toMatchObject({ MessageId: sent.MessageId, Body: 'héllo 🚀', MD5OfBody: sent.MD5OfMessageBody })
  expect(message?.MessageAttributes?.['text']?.StringValue).toBe('value')
  expect([...message!.MessageAttributes!['bytes']!.BinaryValue!]).toEqual([1, 2])
  expect(message?.Attributes).toMatchObject({
    ApproximateReceiveCount: '1',
    SenderId: expect.any(String),
    SentTimestamp: expect.stringMatching(/^\d+$/),
    ApproximateFirstReceiveTimestamp: expect.stringMatching(/^\d+$/),
  })
})

test('a received message is hidden, then delivered again with a new receipt handle and a higher count', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  const sent = await queue.send('body')
  const [first] = await queue.receive()
  expect(await queue.receive()).toEqual([])
  await queue.changeVisibility(first?.ReceiptHandle, 1)
  const [second] = await queue.await({ MessageSystemAttributeNames: ['ApproximateReceiveCount'] })
  expect(second?.MessageId).toBe(sent.MessageId)
  expect(second?.ReceiptHandle).not.toBe(first?.ReceiptHandle)
  expect(second?.Attributes?.['ApproximateReceiveCount']).toBe('2')
})

test('an outdated receipt handle deletes nothing and is no error', async () => {
  const { queue } = await serveQueue()
  await queue.send('body')
  const [first] = await queue.receive({ VisibilityTimeout: 0 })
  const [second] = await queue.await()
  await queue.delete(first?.ReceiptHandle)
  await queue.changeVisibility(second?.ReceiptHandle, 0)
  expect(await queue.receive()).toHaveLength(1)
})

test('a deleted message does not come back', async () => {
  const { queue } = await serveQueue()
  await queue.send('body')
  const [message] = await queue.receive({ VisibilityTimeout: 0 })
  const [again] = await queue.receive()
  expect(again?.MessageId).toBe(message?.MessageId)
  await queue.delete(again?.ReceiptHandle)
  expect(await queue.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '0',
    ApproximateNumberOfMessagesNotVisible: '0',
  })
})

test('visibility 0 shows a message at once, also to those who wait', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const [first] = await queue.receive()
  const waiting = queue.await()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(2)
  await queue.changeVisibility(first?.ReceiptHandle, 0)
  expect(await waiting).toMatchObject([{ MessageId: first?.MessageId }])
})

test('ten messages are sent, received and deleted in one batch each', async () => {
  const { queue } = await serveQueue()
  const entries = Array.from({ length: 10 }, (_, index) => ({ Id: `entry-${index}`, MessageBody: `body ${index}` }))
  const sent = await queue.sendBatch(entries)
  expect(sent.Successful).toHaveLength(10)
  const received = await queue.receive()
  expect(received.map((message) => message.Body)).toEqual(entries.map((entry) => entry.MessageBody))
  const deleted = await queue.deleteBatch(received.map((message) => message.ReceiptHandle))
  expect(deleted.Successful).toHaveLength(10)
  expect(await queue.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '0',
    ApproximateNumberOfMessagesNotVisible: '0',
  })
})

test('a delay hides a message until it is over, be it the message’s or the queue’s', async () => {
  const { queue: prompt, client } = await serveQueue()
  const slow = await TestQueue.create(client, { DelaySeconds: '1' })
  await Promise.all([prompt.send('body', { DelaySeconds: 1 }), slow.send('body')])
  expect(await prompt.attributes()).toMatchObject({ ApproximateNumberOfMessagesDelayed: '1' })
  expect(await slow.attributes()).toMatchObject({ ApproximateNumberOfMessagesDelayed: '1' })
  expect(await Promise.all([prompt.await(), slow.await()])).toMatchObject([[{ Body: 'body' }], [{ Body: 'body' }]])
})

test('a message received too often moves to the dead-letter queue with its id', async () => {
  const { queue: deadLetters, client } = await serveQueue()
  const queue = await TestQueue.create(client, {
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: await deadLetters.arn(), maxReceiveCount: 2 }),
  })
  const sent = await queue.send('poison')
  for (let receive = 0; receive < 2; receive++) {
    const [message] = await queue.receive()
    await queue.changeVisibility(message?.ReceiptHandle, 0)
  }
  expect(await queue.receive()).toEqual([])
  expect(await deadLetters.receive()).toMatchObject([{ MessageId: sent.MessageId, Body: 'poison' }])
})

test('waiting, hidden and delayed messages are counted apart', async () => {
  const { queue } = await serveQueue()
  for (let sent = 0; sent < 5; sent++) await queue.send('body')
  await queue.send('later', { DelaySeconds: 600 })
  await queue.receive({ MaxNumberOfMessages: 2 })
  expect(await queue.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '3',
    ApproximateNumberOfMessagesNotVisible: '2',
    ApproximateNumberOfMessagesDelayed: '1',
  })
})

test('eight consumers share 500 messages without receiving any twice', async () => {
  const { queue } = await serveQueue()
  const bodies = Array.from({ length: 500 }, (_, index) => String(index))
  for (let start = 0; start < bodies.length; start += 10) {
    const entries = bodies.slice(start, start + 10).map((body) => ({ Id: body, MessageBody: body }))
    await queue.sendBatch(entries)
  }
  const received: string[] = []
  const consume = async () => {
    for (let messages = await queue.receive(); messages.length > 0; messages = await queue.receive()) {
      received.push(...messages.map((message) => message.Body!))
    }
  }
  await Promise.all(Array.from({ length: 8 }, consume))
  expect(received.toSorted()).toEqual(bodies.toSorted())
})

test('a long poll returns a message that arrives while it waits', async () => {
  const { queue, sqs } = await serveQueue()
  const waiting = queue.await()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  await queue.send('body')
  expect(await waiting).toHaveLength(1)
})

test('a long poll that its caller aborted does not swallow the next message', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  const caller = new AbortController()
  const waiting = queue.receive({ WaitTimeSeconds: 20 }, caller.signal)
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  caller.abort()
  await expect(waiting).rejects.toThrow(/abort/i)
  await queue.send('body')
  expect(await queue.await()).toHaveLength(1)
})

test('a message taken for a caller who has hung up meanwhile goes to the next one', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const caller = await sendReceive(sqs.url, queue.url)
  caller.destroy()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  expect(await queue.await()).toHaveLength(1)
})

test('a message whose receiver hangs up without reading goes to the next one', async () => {
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

const flood = (queue: TestQueue, group: string, count: number) =>
  queue.sendBatch(
    Array.from({ length: count }, (_, index) => ({
      Id: `${group}-${index}`,
      MessageBody: `${group}-${index}`,
      MessageGroupId: group,
    })),
  )

const bodies = async (queue: TestQueue, count: number) =>
  (await queue.receive({ MaxNumberOfMessages: count })).map(({ Body }) => Body)

test('a message of a quiet group comes before those of a group that floods the queue', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (let part = 0; part < 3; part++) await flood(queue, 'noisy', 10)
  await flood(queue, 'quiet', 1)
  expect(await bodies(queue, 2)).toEqual(['noisy-0', 'quiet-0'])
})

test('a group that has messages under way waits for one that has none', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  await flood(queue, 'noisy', 10)
  expect(await bodies(queue, 4)).toEqual(['noisy-0', 'noisy-1', 'noisy-2', 'noisy-3'])
  await flood(queue, 'quiet', 3)
  expect(await bodies(queue, 3)).toEqual(['quiet-0', 'quiet-1', 'quiet-2'])
})

test('messages without a group, or of one group, come in the order in which they were sent', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (const body of ['a', 'b', 'c']) await queue.send(body)
  expect(await bodies(queue, 3)).toEqual(['a', 'b', 'c'])
  await flood(queue, 'one', 5)
  expect(await bodies(queue, 5)).toEqual(['one-0', 'one-1', 'one-2', 'one-3', 'one-4'])
})
