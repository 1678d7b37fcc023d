import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { callsOf, serveQueue, until } from './support.ts'

test('a long poll returns a message that arrives while it waits', async () => {
  const { queue, sqs } = await serveQueue()
  const waiting = queue.await()
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(1)
  await queue.send('body')
  expect(await waiting).toHaveLength(1)
})

test('a long poll that its caller aborted does not swallow the next message', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  const caller = new AbortController()
  const waiting = queue.receive({ WaitTimeSeconds: 20 }, caller.signal)
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(1)
  caller.abort()
  await expect(waiting).rejects.toThrow(/abort/i)
  await queue.send('body')
  expect(await queue.await()).toHaveLength(1)
})

test('a queue may make every receive a long poll', async () => {
  const { queue, sqs } = await serveQueue({ ReceiveMessageWaitTimeSeconds: '20' })
  const waiting = queue.receive()
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(1)
  await queue.send('body')
  expect(await waiting).toHaveLength(1)
})

test('a message taken for a caller who has hung up meanwhile goes to the next one', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const caller = await sendReceive(sqs.url, queue.url)
  caller.destroy()
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(1)
  expect(await queue.await()).toHaveLength(1)
})

test('a message whose receiver hangs up without reading goes to the next one', async () => {
  const { queue, sqs } = await serveQueue({ VisibilityTimeout: '600' })
  await queue.send('body')
  const caller = await sendReceive(sqs.url, queue.url)
  const inFlight = async () => (await queue.attributes())['ApproximateNumberOfMessagesNotVisible']
  await until(inFlight).toBe('1')
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
