import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { Worker } from 'node:worker_threads'
import { GetQueueUrlCommand } from '@aws-sdk/client-sqs'
import { expect, test } from 'vitest'
import { callsOf, serveQueue, serveSqs, sqsClient, temporaryFolder, TestQueue, until } from './support.ts'

test('calls are counted by action until the counts are reset', async () => {
  const { sqs, queue } = await serveQueue()
  await queue.send('one')
  await queue.send('two')
  expect(await (await fetch(`${sqs.url}/_metrics`)).json()).toEqual({ CreateQueue: 1, SendMessage: 2 })
  await fetch(`${sqs.url}/_metrics/reset`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  expect(await (await fetch(`${sqs.url}/_metrics`)).json()).toEqual({})
})

test('closing answers those who wait at once, and then nobody', { timeout: 10_000 }, async () => {
  const { sqs, queue } = await serveQueue()
  const waiting = queue.await()
  await until(() => callsOf(sqs.url, 'ReceiveMessage')).toBe(1)
  await Promise.all([sqs.close(), sqs.close()])
  expect(await waiting).toEqual([])
  await expect(fetch(sqs.url)).rejects.toThrow('fetch failed')
})

test('closing does not wait for a connection that sends nothing', { timeout: 10_000 }, async () => {
  const { sqs } = await serveSqs()
  const silent = connect(Number(new URL(sqs.url).port), '127.0.0.1')
  await once(silent, 'connect')
  await fetch(`${sqs.url}/_metrics`)
  await Promise.all([once(silent, 'close'), sqs.close()])
})

test('a queue keeps its URL’s path over a restart, at the new port', async () => {
  const dataDir = await temporaryFolder()
  const first = await serveSqs({ dataDir })
  const queue = await TestQueue.create(first.client)
  await first.sqs.close()
  const second = await serveSqs({ dataDir })
  const { pathname } = new URL(queue.url)
  const command = new GetQueueUrlCommand({ QueueName: pathname.split('/').at(-1) })
  expect(await second.client.send(command)).toMatchObject({ QueueUrl: `${second.sqs.url}${pathname}` })
})

test('only the loopback address is served', async () => {
  const { sqs } = await serveSqs()
  const { port } = new URL(sqs.url)
  const outside = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  for (const { address, internal, family } of outside) {
    if (internal || family !== 'IPv4') continue
    await expect(fetch(`http://${address}:${port}/_metrics`)).rejects.toThrow('fetch failed')
  }
})

test('a request under a foreign host name is refused, as a rebinding web page would send it', async () => {
  const { sqs } = await serveSqs()
  const foreign = request(`${sqs.url}/_metrics`, { headers: { host: 'attacker.example' } }).end()
  const [response] = await once(foreign, 'response')
  response.resume()
  expect(response.statusCode).toBe(403)
})

test('with an access key set, requests of other signers are refused', async () => {
  const { sqs } = await serveSqs({ accessKeyId: 'the-key' })
  const stranger = sqsClient(sqs.url, { accessKeyId: 'another-key' })
  await expect(TestQueue.create(stranger)).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  const owner = sqsClient(sqs.url, { accessKeyId: 'the-key' })
  await expect(TestQueue.create(owner)).resolves.toBeDefined()
})

test('the server runs in a worker thread, which ends by itself once the server is closed', async () => {
  const worker = new Worker(new URL('serve.ts', import.meta.url), { workerData: await temporaryFolder() })
  const [url] = await once(worker, 'message')
  const queue = await TestQueue.create(sqsClient(url))
  await queue.send('body')
  expect(await queue.receive()).toHaveLength(1)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
  worker.postMessage('close')
  expect(await once(worker, 'exit')).toEqual([0])
})
