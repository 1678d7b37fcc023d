import { once } from 'node:events'
import { request } from 'node:http'
import { createLongPolls } from '@platform/local/gateway/long-polls'
import { listenForNotifications } from '@platform/local/gateway/notify'
import { expect, test } from 'vitest'
import { startGateway } from './support.ts'

const hourSeconds = 3600
const never = new AbortController().signal

const held = (channel: string, timeoutSeconds: number | string = hourSeconds) => ({
  statusCode: 200,
  headers: {
    'Grip-Hold': 'response',
    'Grip-Channel': channel,
    'Grip-Timeout': String(timeoutSeconds),
    'X-Kept': 'yes',
  },
  body: 'nothing yet',
})

/** Rings as a function does. */
const ring = async (url: string, body: string) => (await fetch(url, { method: 'POST', body })).status

/** Whether a promise is settled after all that is due now has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  void promise.then(() => (settled = true))
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

test('a held answer waits until its channel rings, and keeps the hold to itself', async () => {
  const invoked = Promise.withResolvers<void>()
  await using gateway = await startGateway(async (_name, event) => {
    if (event.rawPath === '/things/other') return { statusCode: 200 }
    invoked.resolve()
    return held('clus_1')
  })
  const response = fetch(`${gateway.url}/things`)
  await invoked.promise
  gateway.holding.ring('clus_2')
  await fetch(`${gateway.url}/things/other`)
  expect(await isSettled(response)).toBe(false)
  gateway.holding.ring('clus_1')
  const answer = await response
  expect(await answer.text()).toBe('nothing yet')
  expect(answer.headers.get('x-kept')).toBe('yes')
  expect([...answer.headers.keys()].filter((name) => name.startsWith('grip'))).toEqual([])
})

test('a ring while the function still looks for work is not lost', async () => {
  await using gateway = await startGateway(async () => {
    gateway.holding.ring('clus_1')
    return held('clus_1')
  })
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
})

test('a held answer goes out when its time is over', async () => {
  await using gateway = await startGateway(async () => held('clus_1', '0.01'))
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
})

test('a caller who hangs up is not waited for', async () => {
  const invoked = Promise.withResolvers<void>()
  await using gateway = await startGateway(async () => {
    invoked.resolve()
    return held('clus_1')
  })
  const call = request(`${gateway.url}/things`).end()
  call.on('error', () => undefined)
  await invoked.promise
  call.destroy()
  await gateway.drain(60_000)
})

test('a release lets all held answers go, and holds none afterwards', async () => {
  const invoked = Promise.withResolvers<void>()
  await using gateway = await startGateway(async () => {
    invoked.resolve()
    return held('clus_1')
  })
  const early = fetch(`${gateway.url}/things`)
  await invoked.promise
  gateway.holding.releaseAll()
  expect((await early).status).toBe(200)
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
})

test.for([
  ['another kind of hold', { 'grip-hold': 'stream', 'grip-channel': 'a', 'grip-timeout': '60' }],
  ['no channel', { 'grip-hold': 'response', 'grip-timeout': '60' }],
  ['no time', { 'grip-hold': 'response', 'grip-channel': 'a' }],
  ['a time that is no number', { 'grip-hold': 'response', 'grip-channel': 'a', 'grip-timeout': 'soon' }],
] as const)('an answer with %s is not held', async ([, headers]) => {
  await using gateway = await startGateway(async () => ({ statusCode: 200, headers }))
  expect((await fetch(`${gateway.url}/things`)).status).toBe(200)
})

test('one ring ends every wait of its channel', async () => {
  const holding = createLongPolls()
  const waits = [1, 2, 3].map(() => holding.wait('a', holding.mark(), 60_000, never))
  holding.ring('a')
  await Promise.all(waits)
})

test('only rings after the mark count', async () => {
  const holding = createLongPolls()
  holding.ring('a')
  const mark = holding.mark()
  const wait = holding.wait('a', mark, 60_000, never)
  expect(await isSettled(wait)).toBe(false)
  holding.ring('a')
  await wait
})

test('a ring that was forgotten for want of room counts as a ring', async () => {
  const holding = createLongPolls()
  const mark = holding.mark()
  for (let channel = 0; channel <= 20_000; channel++) holding.ring(`channel-${channel}`)
  await holding.wait('channel-0', mark, 60_000, never)
  const late = holding.wait('channel-0', holding.mark(), 60_000, never)
  expect(await isSettled(late)).toBe(false)
  holding.releaseAll()
  await late
})

test('functions ring over HTTP, and only those who know the secret path', async () => {
  const rung: string[] = []
  const listener = await listenForNotifications((channel) => rung.push(channel))
  const body = JSON.stringify({ channel: 'clus_1' })
  expect(await ring(listener.url, body)).toBe(204)
  expect(await ring(new URL('/', listener.url).href, body)).toBe(404)
  expect(await ring(`${listener.url}x`, body)).toBe(404)
  expect((await fetch(listener.url)).status).toBe(404)
  expect(await ring(listener.url, 'nonsense')).toBe(400)
  expect(await ring(listener.url, '{"channel":""}')).toBe(400)
  expect(rung).toEqual(['clus_1'])
  expect(new URL(listener.url)).toMatchObject({ hostname: '127.0.0.1', pathname: expect.stringMatching(/^\/.{43}$/) })
  await listener.close()
})

test('the listener for rings closes while a connection is open', async () => {
  const listener = await listenForNotifications(() => undefined)
  const call = request(listener.url, { method: 'POST' })
  call.on('error', () => undefined)
  call.write('{')
  await once(call, 'socket')
  await listener.close()
})
