import { expect, test } from 'vitest'
import { createQueueFaults } from '../../../support/emulators/queue-faults.ts'
import { serveSqs, sqsClient, TestQueue } from './support.ts'

async function serveFaulty() {
  const faults = createQueueFaults()
  const { sqs, client } = await serveSqs({ hooks: faults.hooks })
  return { faults, sqs, queue: await TestQueue.create(client) }
}

test('a duplicate is delivered once more, even after the first delivery was deleted', async () => {
  const { queue, faults } = await serveFaulty()
  faults.set({ duplicateRate: 1 })
  const sent = await queue.send('body')
  const [first] = await queue.receive()
  await queue.delete(first?.ReceiptHandle)
  const [second] = await queue.receive()
  expect([first?.MessageId, second?.MessageId]).toEqual([sent.MessageId, sent.MessageId])
  expect(second?.ReceiptHandle).not.toBe(first?.ReceiptHandle)
  expect(await queue.receive()).toEqual([])
})

test('reordering delivers every message, in another order', async () => {
  const { queue, faults } = await serveFaulty()
  faults.set({ reorderRate: 1, seed: 3 })
  const bodies = Array.from({ length: 10 }, (_, index) => String(index))
  for (const body of bodies) await queue.send(body)
  const received = (await queue.receive()).map((message) => message.Body)
  expect(new Set(received)).toEqual(new Set(bodies))
  expect(received).not.toEqual(bodies)
})

test('a send with a lost response fails, its message is stored, and a retry of the SDK stores it twice', async () => {
  const { queue, sqs, faults } = await serveFaulty()
  faults.set({ lostAcknowledgementRate: 1 })
  await expect(queue.send('first')).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(await queue.receive()).toMatchObject([{ Body: 'first' }])
  const retrying = new TestQueue(sqsClient(sqs.url, { maxAttempts: 2 }), queue.url)
  await expect(retrying.send('second')).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(await queue.receive()).toMatchObject([{ Body: 'second' }, { Body: 'second' }])
})

test('a throttled call is rejected and not performed', async () => {
  const { queue, faults } = await serveFaulty()
  faults.set({ throttleRate: 1 })
  await expect(queue.send('body')).rejects.toMatchObject({ name: 'RequestThrottled' })
  faults.reset()
  expect(await queue.receive()).toEqual([])
})

test('faults are read, changed and reset over HTTP', async () => {
  const { sqs, faults } = await serveFaulty()
  const request = async (method: string, body?: string) =>
    (await fetch(`${sqs.url}/_faults`, { method, ...(body && { body }) })).json()
  expect(await request('POST', '{"duplicateRate":0.25}')).toMatchObject({ duplicateRate: 0.25, throttleRate: 0 })
  expect(await request('GET')).toEqual(faults.read())
  expect(await request('DELETE')).toMatchObject({ duplicateRate: 0 })
})
