import type { Message } from '@aws-sdk/client-sqs'
import { expect, onTestFinished, test } from 'vitest'
import { runServer } from '../../support/program.ts'
import { poll, serveSqs, sqsClient, temporaryDir, TestQueue } from './support.ts'

/** A server that can be killed, with one queue. */
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
  const acknowledged = new Set<string>()
  const maybeDeleted = new Set<string>()
  const deleted = new Set<string>()
  const produce = async () => void acknowledged.add((await queue.send('body')).MessageId!)
  const consume = async () => {
    const messages = await queue.receive({ WaitTimeSeconds: 1, VisibilityTimeout: 1 })
    if (messages.length === 0) return
    for (const message of messages) maybeDeleted.add(message.MessageId!)
    await queue.deleteBatch(messages.map((message) => message.ReceiptHandle))
    for (const message of messages) deleted.add(message.MessageId!)
  }
  const load = Promise.all([produce, produce, produce, produce, consume].map(repeatUntilError))
  await poll(() => acknowledged.size).toBeGreaterThan(300)
  await kill()
  await load

  const remaining = new Set((await drain(await restart())).map((message) => message.MessageId!))
  expect([...acknowledged].filter((id) => !remaining.has(id) && !maybeDeleted.has(id))).toEqual([])
  expect([...deleted].filter((id) => remaining.has(id))).toEqual([])
})

test('a kill keeps messages in flight hidden, and released ones visible', async () => {
  const { queue, kill, restart } = await startQueue()
  await queue.send('in flight')
  await queue.receive()
  await queue.send('released')
  const [message] = await queue.receive()
  await queue.changeVisibility(message?.ReceiptHandle, 0)
  await kill()

  const restarted = await restart()
  expect(await restarted.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '1',
    ApproximateNumberOfMessagesNotVisible: '1',
  })
  expect(await restarted.receive()).toMatchObject([{ Body: 'released' }])
})
