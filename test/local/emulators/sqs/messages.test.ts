import { ChangeMessageVisibilityBatchCommand } from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { callsOf, serveQueue, TestQueue, until } from './support.ts'

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

test('attributes come only to those who ask for them', async () => {
  const { queue } = await serveQueue()
  await queue.send('body', { MessageAttributes: { text: { DataType: 'String', StringValue: 'value' } } })
  const [message] = await queue.receive()
  expect(message?.MessageAttributes).toBeUndefined()
  expect(message?.Attributes).toBeUndefined()
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
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(2)
  await queue.changeVisibility(first?.ReceiptHandle, 0)
  expect(await waiting).toMatchObject([{ MessageId: first?.MessageId }])
})

test('a batch of visibility changes reports the bad entry and performs the good one', async () => {
  const { queue, client } = await serveQueue()
  await queue.send('body')
  const [message] = await queue.receive()
  const entries = [message?.ReceiptHandle, 'bogus'].map((handle, index) => ({
    Id: `entry-${index}`,
    ReceiptHandle: handle,
    VisibilityTimeout: 0,
  }))
  const output = await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: queue.url, Entries: entries }))
  expect(output.Successful).toEqual([{ Id: 'entry-0' }])
  expect(output.Failed).toMatchObject([{ Id: 'entry-1', Code: 'ReceiptHandleIsInvalid', SenderFault: true }])
  expect(await queue.receive()).toHaveLength(1)
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

test('a message of 1 MiB arrives whole', async () => {
  const { queue } = await serveQueue()
  const body = 'x'.repeat(1024 * 1024)
  await queue.send(body)
  expect((await queue.receive())[0]?.Body).toBe(body)
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
