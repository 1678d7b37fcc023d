import { CreateQueueCommand } from '@aws-sdk/client-sqs'
import { describe, expect, test } from 'vitest'
import { serveQueue, serveSqs } from './support.ts'

const entry = (id: number, body = 'body') => ({ Id: `entry-${id}`, MessageBody: body })

describe('AWS refuses, and so does the stand-in', () => {
  test.each([
    ['U+FFFF', 'a\uFFFFb'],
    ['U+FFFE', 'a\uFFFEb'],
    ['a control character', 'a\u0001b'],
    ['a lone surrogate', 'a\uD83D'],
  ])('a body with %s', async (_, body) => {
    const { queue } = await serveQueue()
    await expect(queue.send(body)).rejects.toMatchObject({ name: 'InvalidMessageContents' })
  })

  test('an attribute with a forbidden character', async () => {
    const { queue } = await serveQueue()
    const attribute = { DataType: 'String', StringValue: 'a\uFFFFb' }
    const sent = queue.send('body', { MessageAttributes: { attribute } })
    await expect(sent).rejects.toMatchObject({ name: 'InvalidMessageContents' })
  })

  test.each([
    ['an empty body', '', {}, /MissingParameter|InvalidParameterValue/],
    ['a body over 1 MiB', 'x'.repeat(1024 * 1024 + 1), {}, /InvalidParameterValue/],
    ['a delay over 15 minutes', 'body', { DelaySeconds: 901 }, /InvalidParameterValue/],
    ['a negative delay', 'body', { DelaySeconds: -1 }, /InvalidParameterValue/],
  ])('%s', async (_, body, more, name) => {
    const { queue } = await serveQueue()
    await expect(queue.send(body, more)).rejects.toMatchObject({ name: expect.stringMatching(name) })
  })

  test.each([{ MaxNumberOfMessages: 11 }, { WaitTimeSeconds: 21 }, { VisibilityTimeout: 43_201 }])(
    'receiving with %o',
    async (input) => {
      const { queue } = await serveQueue()
      await expect(queue.receive(input)).rejects.toMatchObject({ name: 'InvalidParameterValue' })
    },
  )

  test('a receipt handle that was never issued', async () => {
    const { queue } = await serveQueue()
    await expect(queue.delete('bogus')).rejects.toMatchObject({ name: 'ReceiptHandleIsInvalid' })
  })

  test('a FIFO queue, which only the stand-in refuses', async () => {
    const { client } = await serveSqs()
    const command = new CreateQueueCommand({ QueueName: 'jobs.fifo', Attributes: { FifoQueue: 'true' } })
    await expect(client.send(command)).rejects.toMatchObject({ name: 'InvalidParameterValue' })
  })

  test.each([
    ['an empty batch', [], 'EmptyBatchRequest'],
    ['eleven entries', Array.from({ length: 11 }, (_, id) => entry(id)), 'TooManyEntriesInBatchRequest'],
    ['two entries with one id', [entry(1), entry(1)], 'BatchEntryIdsNotDistinct'],
    ['more than 1 MiB in a batch', [1, 2, 3].map((id) => entry(id, 'x'.repeat(400_000))), 'BatchRequestTooLong'],
    [
      'eleven entries, one of them bad',
      [entry(0, '\u0001'), ...Array.from({ length: 10 }, (_, id) => entry(id + 1))],
      'TooManyEntriesInBatchRequest',
    ],
  ])('%s', async (_, entries, name) => {
    const { queue } = await serveQueue()
    await expect(queue.sendBatch(entries)).rejects.toMatchObject({ name })
  })
})

describe('a bad entry fails alone', () => {
  test('of a batch of messages', async () => {
    const { queue } = await serveQueue()
    const entries = [entry(0), entry(1, 'a\uFFFFb'), { ...entry(2), DelaySeconds: 901 }]
    const output = await queue.sendBatch(entries)
    expect(output.Successful).toMatchObject([{ Id: 'entry-0' }])
    expect(output.Failed).toMatchObject([
      { Id: 'entry-1', Code: 'InvalidMessageContents', SenderFault: true },
      { Id: 'entry-2', Code: 'InvalidParameterValue', SenderFault: true },
    ])
    expect(await queue.receive()).toHaveLength(1)
  })

  test('of a batch of deletions, even when every entry is bad', async () => {
    const { queue } = await serveQueue()
    const output = await queue.deleteBatch(['bogus'])
    expect(output.Failed).toMatchObject([{ Id: 'entry-0', Code: 'ReceiptHandleIsInvalid' }])
  })
})
