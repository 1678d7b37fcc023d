import { type QueuePollerOptions, startQueuePoller } from '@platform/local/events/poller'
import type { SqsBatchResponse, SqsEvent, SqsRecord } from '@platform/local/events/sqs-event'
import { expect, onTestFinished, test } from 'vitest'
import { poll, serveQueue, serveSqs, temporaryDir, TestQueue } from '../emulators/sqs/support.ts'
import { sqsCalls } from '../../support/sqs-calls.ts'

async function startPoller(
  queue: TestQueue,
  invoke: (event: SqsEvent) => Promise<SqsBatchResponse | null | void>,
  options: Partial<QueuePollerOptions> = {},
) {
  const poller = startQueuePoller({
    call: sqsCalls(queue.client),
    queueUrl: queue.url,
    queueArn: await queue.arn(),
    batchSize: 10,
    maximumConcurrency: 2,
    visibilityTimeoutSeconds: 600,
    invoke,
    log: () => undefined,
    ...options,
  })
  onTestFinished(() => poller.stop())
  return poller
}

function recorder(
  respond: (records: SqsRecord[]) => Promise<SqsBatchResponse> | SqsBatchResponse | void = () => undefined,
) {
  const batches: SqsRecord[][] = []
  const invoke = async ({ Records: records }: SqsEvent) => {
    batches.push(records)
    return respond(records)
  }
  const bodies = () => batches.flat().map((record) => record.body)
  return { batches, bodies, invoke }
}

const releaseMessages = (queue: TestQueue, records: SqsRecord[] = []) =>
  Promise.all(records.map((record) => queue.changeVisibility(record.receiptHandle, 0)))

async function readDepth(queue: TestQueue): Promise<number> {
  const counts = await queue.attributes()
  return Number(counts['ApproximateNumberOfMessages']) + Number(counts['ApproximateNumberOfMessagesNotVisible'])
}

const failuresOf = (records: { messageId: string }[]) => ({
  batchItemFailures: records.map((record) => ({ itemIdentifier: record.messageId })),
})

const isFirstDelivery = (records: SqsRecord[]) =>
  records.some((record) => record.attributes['ApproximateReceiveCount'] === '1')

const byName = (a: string, b: string) => a.localeCompare(b)

test('builds the event of Lambda’s event source mapping', async () => {
  const { queue } = await serveQueue()
  const sentMessage = await queue.send('body', {
    MessageAttributes: {
      text: { DataType: 'String', StringValue: 'value' },
      bytes: { DataType: 'Binary', BinaryValue: new Uint8Array([1, 2]) },
    },
  })
  const handler = recorder()
  await startPoller(queue, handler.invoke)
  await poll(() => handler.batches).toHaveLength(1)
  expect(handler.batches[0]).toEqual([
    {
      messageId: sentMessage.MessageId,
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
      md5OfMessageAttributes: sentMessage.MD5OfMessageAttributes,
      md5OfBody: sentMessage.MD5OfMessageBody,
      eventSource: 'aws:sqs',
      eventSourceARN: await queue.arn(),
      awsRegion: 'eu-central-1',
    },
  ])
})

test('delivers failed messages again, and deletes the others', async () => {
  const { queue } = await serveQueue()
  for (const body of ['good', 'bad', 'fine']) await queue.send(body)
  const handler = recorder((records) => failuresOf(records.filter((record) => record.body === 'bad')))
  await startPoller(queue, handler.invoke)
  await poll(() => readDepth(queue)).toBe(1)
  const badRecords = handler.batches[0]?.filter((record) => record.body === 'bad')
  await releaseMessages(queue, badRecords)
  await poll(() => handler.bodies()).toEqual(['good', 'bad', 'fine', 'bad'])
})

test.each([
  ['a throw', () => Promise.reject(new Error('no'))],
  ['an unknown failed id', () => failuresOf([{ messageId: 'unknown' }])],
])('delivers the whole batch again after %s', async (_, fail) => {
  const { queue } = await serveQueue()
  for (const body of ['one', 'two']) await queue.send(body)
  const handler = recorder((records) => (isFirstDelivery(records) ? fail() : undefined))
  const failed = Promise.withResolvers<void>()
  await startPoller(queue, handler.invoke, { log: () => failed.resolve() })
  await failed.promise
  expect(await readDepth(queue)).toBe(2)
  await releaseMessages(queue, handler.batches[0])
  await poll(() => readDepth(queue)).toBe(0)
  expect(handler.bodies().toSorted(byName)).toEqual(['one', 'one', 'two', 'two'])
})

test('a stop waits for running batches, and deletes their messages', async () => {
  const { queue } = await serveQueue()
  await queue.send('under way')
  const started = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const poller = await startPoller(queue, () => {
    started.resolve()
    return release.promise
  })
  await started.promise
  const order: string[] = []
  const stopped = poller.stop().then(() => order.push('stopped'))
  await queue.send('after the stop')
  order.push('released')
  release.resolve()
  await stopped
  expect(order).toEqual(['released', 'stopped'])
  expect(await queue.receive()).toMatchObject([{ Body: 'after the stop' }])
  expect(await readDepth(queue)).toBe(1)
})

test('handles every message when stopped and started under load', async () => {
  const { queue } = await serveQueue()
  const bodies = Array.from({ length: 100 }, (_, index) => String(index))
  const handler = recorder()
  const sending = (async () => {
    for (const body of bodies) await queue.send(body)
  })()
  for (let handled = 10; handled <= 50; handled += 10) {
    const poller = await startPoller(queue, handler.invoke, { visibilityTimeoutSeconds: 1 })
    await poll(() => handler.batches.flat().length).toBeGreaterThanOrEqual(handled)
    await poller.stop()
  }
  await sending
  await startPoller(queue, handler.invoke)
  await poll(() => readDepth(queue)).toBe(0)
  expect(new Set(handler.bodies())).toEqual(new Set(bodies))
})

test('limits the number of concurrent batches', async () => {
  const { queue } = await serveQueue()
  for (let sent = 0; sent < 6; sent++) await queue.send('body')
  const release = Promise.withResolvers<void>()
  let runningCount = 0
  let maxRunning = 0
  const invoke = async () => {
    maxRunning = Math.max(maxRunning, ++runningCount)
    await release.promise
    runningCount--
  }
  await startPoller(queue, invoke, { batchSize: 1, maximumConcurrency: 3 })
  await poll(() => runningCount).toBe(3)
  release.resolve()
  await poll(() => readDepth(queue)).toBe(0)
  expect(maxRunning).toBe(3)
})

test('continues after an outage of the queue, and stops during one', async () => {
  const dataDir = await temporaryDir()
  const { sqs, client } = await serveSqs({ dataDir })
  const queue = await TestQueue.create(client)
  const handler = recorder()
  const logged = Promise.withResolvers<void>()
  const poller = await startPoller(queue, handler.invoke, { log: () => logged.resolve() })
  await sqs.close()
  await logged.promise

  const restartedSqs = await serveSqs({ dataDir, port: Number(new URL(sqs.url).port) })
  await queue.send('body')
  await poll(() => handler.bodies()).toEqual(['body'])
  await restartedSqs.sqs.close()
  await poller.stop()
})
