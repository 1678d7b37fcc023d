import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Message } from '@aws-sdk/client-sqs'
import { expect, onTestFinished, test } from 'vitest'
import { serveSqs, sqsClient, temporaryFolder, TestQueue, poll } from './support.ts'

/** A server in a process of its own that can be killed, with one queue. */
async function startProcess() {
  const dataDir = await temporaryFolder()
  const server = fork(new URL('serve.ts', import.meta.url), [dataDir])
  const kill = async () => {
    if (server.kill('SIGKILL')) await once(server, 'exit')
  }
  onTestFinished(kill)
  const [url] = await once(server, 'message')
  const queue = await TestQueue.create(sqsClient(url), { VisibilityTimeout: '600' })
  const restart = async () => {
    const { client } = await serveSqs({ dataDir })
    return new TestQueue(client, queue.url)
  }
  return { queue, kill, restart }
}

/** Receives all that is left, also what is in flight elsewhere. */
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

async function untilKilled(work: () => Promise<void>) {
  for (;;) {
    try {
      await work()
    } catch {
      return
    }
  }
}

test('a kill under load loses no acknowledged message and revives no deleted one', async () => {
  const { queue, kill, restart } = await startProcess()
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
  const load = Promise.all([produce, produce, produce, produce, consume].map(untilKilled))
  await poll(() => acknowledged.size).toBeGreaterThan(300)
  await kill()
  await load

  const restarted = await restart()
  const waiting = new Set((await drain(restarted)).map((message) => message.MessageId!))
  expect([...acknowledged].filter((id) => !waiting.has(id) && !maybeDeleted.has(id))).toEqual([])
  expect([...deleted].filter((id) => waiting.has(id))).toEqual([])
})

test('a kill neither shows a message in flight early nor hides one that was given back', async () => {
  const { queue, kill, restart } = await startProcess()
  await queue.send('in flight')
  await queue.receive()
  await queue.send('given back')
  const [message] = await queue.receive()
  await queue.changeVisibility(message?.ReceiptHandle, 0)
  await kill()

  const restarted = await restart()
  expect(await restarted.attributes()).toMatchObject({
    ApproximateNumberOfMessages: '1',
    ApproximateNumberOfMessagesNotVisible: '1',
  })
  expect(await restarted.receive()).toMatchObject([{ Body: 'given back' }])
})
