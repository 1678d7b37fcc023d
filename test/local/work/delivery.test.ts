import type { SqsRecord } from '@platform/local/events/sqs-event'
import { expect, test } from 'vitest'
import { createQueueFaults } from '../../support/emulators/queue-faults.ts'
import { serveSqs, TestQueue, poll } from '../emulators/sqs/support.ts'
import { depth, gate, giveBack, pumpOf, recorder } from './support.ts'

const failuresOf = (records: { messageId: string }[]) => ({
  batchItemFailures: records.map((record) => ({ itemIdentifier: record.messageId })),
})

const isFirstDelivery = (records: SqsRecord[]) =>
  records.some((record) => record.attributes['ApproximateReceiveCount'] === '1')

const byName = (one: string, other: string) => one.localeCompare(other)

test('a function gets the event that Lambda would give it', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  const sent = await queue.send('body', {
    MessageAttributes: {
      text: { DataType: 'String', StringValue: 'value' },
      bytes: { DataType: 'Binary', BinaryValue: new Uint8Array([1, 2]) },
    },
  })
  const handler = recorder()
  await pumpOf(queue, handler.invoke)
  await poll(() => handler.batches).toHaveLength(1)
  expect(handler.batches[0]).toEqual([
    {
      messageId: sent.MessageId,
      receiptHandle: expect.any(String),
      body: 'body',
      attributes: {
        ApproximateReceiveCount: '1',
        ApproximateFirstReceiveTimestamp: expect.stringMatching(/^\d{13}$/),
        SentTimestamp: expect.stringMatching(/^\d{13}$/),
        SenderId: expect.any(String),
      },
      messageAttributes: {
        text: { stringValue: 'value', stringListValues: [], binaryListValues: [], dataType: 'String' },
        bytes: { binaryValue: 'AQI=', stringListValues: [], binaryListValues: [], dataType: 'Binary' },
      },
      md5OfMessageAttributes: sent.MD5OfMessageAttributes,
      md5OfBody: sent.MD5OfMessageBody,
      eventSource: 'aws:sqs',
      eventSourceARN: await queue.arn(),
      awsRegion: 'eu-central-1',
    },
  ])
})

test('handled messages are deleted', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  for (const body of ['one', 'two', 'three']) await queue.send(body)
  const handler = recorder()
  await pumpOf(queue, handler.invoke)
  await poll(() => depth(queue)).toBe(0)
  expect(handler.bodies()).toEqual(['one', 'two', 'three'])
})

test('only the messages named as failed come again', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  for (const body of ['good', 'bad', 'fine']) await queue.send(body)
  const handler = recorder((records) => failuresOf(records.filter((record) => record.body === 'bad')))
  await pumpOf(queue, handler.invoke)
  await poll(() => depth(queue)).toBe(1)
  await giveBack(
    queue,
    handler.batches[0]?.filter((record) => record.body === 'bad'),
  )
  await poll(() => handler.bodies()).toEqual(['good', 'bad', 'fine', 'bad'])
})

test('what failed comes again after the visibility timeout', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  await queue.send('body')
  const handler = recorder((records) => (isFirstDelivery(records) ? failuresOf(records) : undefined))
  await pumpOf(queue, handler.invoke, { visibilityTimeoutSeconds: 1 })
  await poll(() => depth(queue)).toBe(0)
  expect(handler.bodies()).toEqual(['body', 'body'])
})

test.each([
  ['a throw', () => Promise.reject(new Error('no'))],
  ['a failure that names no message of the batch', () => failuresOf([{ messageId: 'unknown' }])],
])('after %s the whole batch comes again', async (_, fail) => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  for (const body of ['one', 'two']) await queue.send(body)
  const handler = recorder((records) => (isFirstDelivery(records) ? fail() : undefined))
  const failed = gate()
  await pumpOf(queue, handler.invoke, { log: () => failed.open() })
  await failed.opened
  expect(await depth(queue)).toBe(2)
  await giveBack(queue, handler.batches[0])
  await poll(() => depth(queue)).toBe(0)
  expect(handler.bodies().toSorted(byName)).toEqual(['one', 'one', 'two', 'two'])
})

test('a message that fails too often ends in the dead-letter queue', async () => {
  const { client } = await serveSqs()
  const deadLetters = await TestQueue.create(client)
  const queue = await TestQueue.create(client, {
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: await deadLetters.arn(), maxReceiveCount: 2 }),
  })
  await queue.send('poison')
  const handler = recorder(failuresOf)
  await pumpOf(queue, handler.invoke)
  for (let delivery = 0; delivery < 2; delivery++) {
    await poll(() => handler.batches).toHaveLength(delivery + 1)
    await giveBack(queue, handler.batches[delivery])
  }
  expect(await deadLetters.await()).toMatchObject([{ Body: 'poison' }])
  expect(handler.bodies()).toEqual(['poison', 'poison'])
  expect(await depth(queue)).toBe(0)
})

test('a duplicate delivery reaches the function as a second call', async () => {
  const faults = createQueueFaults()
  const { client } = await serveSqs({ hooks: faults.hooks })
  const queue = await TestQueue.create(client)
  faults.set({ duplicateRate: 1 })
  const sent = await queue.send('body')
  const handler = recorder()
  await pumpOf(queue, handler.invoke)
  await poll(() => handler.batches.flat().map((record) => record.messageId)).toEqual([sent.MessageId, sent.MessageId])
  await poll(() => depth(queue)).toBe(0)
})
