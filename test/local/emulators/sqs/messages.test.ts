import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { countCalls, poll, serveQueue, type TestQueue } from './support.ts'

test('delivers a message again after its visibility timeout, with a new receipt handle', async () => {
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

test('ignores an outdated receipt handle', async () => {
  const { queue } = await serveQueue()
  await queue.send('body')
  const [first] = await queue.receive({ VisibilityTimeout: 0 })
  const [second] = await queue.await()
  await queue.delete(first?.ReceiptHandle)
  await queue.changeVisibility(second?.ReceiptHandle, 0)
  expect(await queue.receive()).toHaveLength(1)
})

test('visibility 0 delivers a message to a waiting receiver', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const [first] = await queue.receive()
  const waiting = queue.await()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(2)
  await queue.changeVisibility(first?.ReceiptHandle, 0)
  expect(await waiting).toMatchObject([{ MessageId: first?.MessageId }])
})

test('eight consumers receive each of 500 messages once', async () => {
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

test('an aborted long poll does not take the next message', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  const caller = new AbortController()
  const waiting = queue.receive({ WaitTimeSeconds: 20 }, caller.signal)
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  caller.abort()
  await expect(waiting).rejects.toThrow(/abort/i)
  await queue.send('body')
  expect(await queue.await()).toHaveLength(1)
})

test('a message received for a disconnected caller becomes visible again', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const caller = await sendReceive(sqs.url, queue.url)
  caller.destroy()
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
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

const sendGroup = (queue: TestQueue, group: string, count: number) =>
  queue.sendBatch(
    Array.from({ length: count }, (_, index) => `${group}-${index}`).map((id) => ({
      Id: id,
      MessageBody: id,
      MessageGroupId: group,
    })),
  )

const receiveBodies = async (queue: TestQueue, count: number) =>
  (await queue.receive({ MaxNumberOfMessages: count })).map(({ Body }) => Body)

test('delivers a message of another group before the rest of a large group', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (let part = 0; part < 3; part++) await sendGroup(queue, 'large', 10)
  await sendGroup(queue, 'small', 1)
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
