import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { createLongPolls } from '@platform/local/gateway/long-polls'
import { createRouter } from '@platform/local/gateway/routes'
import { listen } from '@platform/local/gateway/server'
import { expect, test } from 'vitest'
import { openConnection, sampleRoutes, startGateway, unread } from './support.ts'

const plain = 'GET /things HTTP/1.1\r\nHost: a\r\n\r\n'

test('before it is opened, a gateway is alive and answers everything else with 503 starting', async () => {
  const gateway = await listen('127.0.0.1', 0)
  const live = await fetch(`${gateway.url}/health/live`)
  expect([live.status, await live.json()]).toEqual([200, { status: 'ok' }])
  for (const path of ['/health/ready', '/health/startup', '/things', '/nowhere', '/health/lively']) {
    const response = await fetch(gateway.url + path)
    expect(response.status, path).toBe(503)
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toMatchObject({ error: 'starting', traceId: response.headers.get('x-trace-id') })
  }
  const context = { route: createRouter(sampleRoutes, 'none'), holding: createLongPolls(), log: () => undefined }
  gateway.open({ ...context, metrics: unread, invoke: async () => ({ statusCode: 200 }) })
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
  await gateway.drain(0)
})

test('a drain answers what is under way, closes what is idle, and then nobody is served', async () => {
  const invoked = Promise.withResolvers<void>()
  const result = Promise.withResolvers<unknown>()
  await using gateway = await startGateway((_name, event) => {
    if (event.rawPath === '/things/quick') return Promise.resolve({ statusCode: 200, body: 'quick' })
    invoked.resolve()
    return result.promise
  })
  const silent = await openConnection(gateway.url)
  const idle = await openConnection(gateway.url)
  idle.write(plain.replace('/things', '/things/quick'))
  await once(idle, 'data')
  const busy = await openConnection(gateway.url)
  busy.write(plain)
  await invoked.promise

  const drained = gateway.drain(60_000)
  await Promise.all([once(silent, 'close'), once(idle, 'close')])
  await expect(fetch(`${gateway.url}/things`)).rejects.toThrow('fetch failed')
  result.resolve({ statusCode: 200, body: 'the answer' })
  const answer = await text(busy)
  expect(answer).toContain('the answer')
  expect(answer.toLowerCase()).toContain('connection: close')
  await drained
})

test('a drain cuts off what is not answered within its limit', async () => {
  const invoked = Promise.withResolvers<void>()
  await using gateway = await startGateway(() => {
    invoked.resolve()
    return new Promise(() => undefined)
  })
  const response = fetch(`${gateway.url}/things`)
  const refused = expect(response).rejects.toThrow('fetch failed')
  await invoked.promise
  await gateway.drain(10)
  await refused
})

test('an answer that crosses the beginning of a drain closes its connection', async () => {
  const result = Promise.withResolvers<unknown>()
  const invoked = Promise.withResolvers<void>()
  await using gateway = await startGateway(() => {
    invoked.resolve()
    return result.promise
  })
  const connection = await openConnection(gateway.url)
  connection.write(plain)
  await invoked.promise
  result.resolve({ statusCode: 200, body: 'x'.repeat(100_000) })
  const drained = gateway.drain(60_000)
  expect(await text(connection)).toContain('x'.repeat(100_000))
  await drained
})
