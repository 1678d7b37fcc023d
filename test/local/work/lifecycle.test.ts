import { startQueuePoller } from '@platform/local/events/poller'
import { expect, test } from 'vitest'
import { countCalls, serveSqs, temporaryFolder, TestQueue, poll } from '../emulators/sqs/support.ts'
import { depth, gate, pumpOf, recorder } from './support.ts'

test('stopping waits for the batches under way and deletes what they handled', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  await queue.send('under way')
  const started = gate()
  const release = gate()
  const pump = await pumpOf(queue, () => {
    started.open()
    return release.opened
  })
  await started.opened
  const order: string[] = []
  const stopped = pump.stop().then(() => order.push('stopped'))
  await queue.send('after the stop')
  order.push('released')
  release.open()
  await stopped
  expect(order).toEqual(['released', 'stopped'])
  expect(await queue.receive()).toMatchObject([{ Body: 'after the stop' }])
  expect(await depth(queue)).toBe(1)
})

test('stopping an idle pump leaves the next message to others at once', async () => {
  const { sqs, client } = await serveSqs()
  const queue = await TestQueue.create(client)
  const pump = await pumpOf(queue, recorder().invoke)
  await poll(() => countCalls(sqs.url, 'ReceiveMessage')).toBe(1)
  await pump.stop()
  await queue.send('body')
  expect(await queue.await()).toHaveLength(1)
})

test('starting and stopping under load handles every message', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  const bodies = Array.from({ length: 100 }, (_, index) => String(index))
  const handler = recorder()
  const sending = (async () => {
    for (const body of bodies) await queue.send(body)
  })()
  for (let handled = 10; handled <= 50; handled += 10) {
    const pump = await pumpOf(queue, handler.invoke, { visibilityTimeoutSeconds: 1 })
    await poll(() => handler.batches.flat().length).toBeGreaterThanOrEqual(handled)
    await pump.stop()
  }
  await sending
  await pumpOf(queue, handler.invoke)
  await poll(() => depth(queue)).toBe(0)
  expect(new Set(handler.bodies())).toEqual(new Set(bodies))
})

test('as many batches run at once as allowed, and no more', async () => {
  const { client } = await serveSqs()
  const queue = await TestQueue.create(client)
  for (let sent = 0; sent < 6; sent++) await queue.send('body')
  const release = gate()
  let running = 0
  let most = 0
  const invoke = async () => {
    most = Math.max(most, ++running)
    await release.opened
    running--
  }
  await pumpOf(queue, invoke, {
    batchSize: 1,
    maximumConcurrency: 3,
  })
  await poll(() => running).toBe(3)
  release.open()
  await poll(() => depth(queue)).toBe(0)
  expect(most).toBe(3)
})

test('a batch size above ten is refused', async () => {
  const { client } = await serveSqs()
  const options = {
    client,
    queueUrl: '',
    queueArn: '',
    batchSize: 11,
    maximumConcurrency: 2,
    visibilityTimeoutSeconds: 1,
    invoke: async () => undefined,
    log: () => undefined,
  }
  expect(() => startQueuePoller(options)).toThrow(RangeError)
})

test('a pump outlives an outage of the queue', async () => {
  const dataDir = await temporaryFolder()
  const { sqs, client } = await serveSqs({ dataDir })
  const queue = await TestQueue.create(client)
  const handler = recorder()
  const logged = gate()
  await pumpOf(queue, handler.invoke, { log: () => logged.open() })
  await sqs.close()
  await logged.opened

  await serveSqs({ dataDir, port: Number(new URL(sqs.url).port) })
  await queue.send('body')
  await poll(() => handler.bodies()).toEqual(['body'])
})

test('a pump that cannot reach its queue still stops', async () => {
  const { sqs, client } = await serveSqs()
  const queue = await TestQueue.create(client)
  const logged = gate()
  const pump = await pumpOf(queue, recorder().invoke, { log: () => logged.open() })
  await sqs.close()
  await logged.opened
  await pump.stop()
})
