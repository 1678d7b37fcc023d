import type { ModuleEvent } from '@platform/modules'
import { publishedLimits } from '@platform/modules/protocol'
import { expect, test } from 'vitest'
import { type Instance, instanceOf, publishedIn, startedInstance } from '../support/sdk-instance.ts'

const cloudEvent = (id: string, type = 'platform.cluster.deleted') => ({
  specversion: '1.0',
  id,
  source: '/organisations/org_acme',
  type,
  subject: 'clus_1',
  time: '2026-11-21T09:30:00.000Z',
  datacontenttype: 'application/json',
  data: { clusterId: 'clus_1', name: 'berlin-1' },
})

type Handler = (event: ModuleEvent, signal: AbortSignal) => void | Promise<void>

const listening = (...handlers: Handler[]): Promise<Instance> =>
  startedInstance({
    configure: ({ eventBus }) => {
      for (const handler of handlers) eventBus.subscribe('platform.cluster.deleted', handler)
    },
  })

const deliver = ({ control }: Instance, ...ids: string[]) =>
  control('POST', '/events', { events: ids.map((id) => cloudEvent(id)) })

test('passes an event to a handler, with the organisation of the module by default', async () => {
  const events: ModuleEvent[] = []
  const instance = await listening((event) => void events.push(event))
  expect(await deliver(instance, 'evt_1')).toEqual({ status: 200, body: { handled: ['evt_1'], failed: [] } })
  const { source: _source, ...withoutSource } = cloudEvent('evt_2')
  await instance.control('POST', '/events', { events: [withoutSource] })
  const { type, time, subject, data } = cloudEvent('evt_1')
  expect(events[0]).toEqual({ id: 'evt_1', type, time, subject, organisationId: 'org_acme', data })
  expect(events[1]?.organisationId).toBe('org_sample')
})

test('delivers events in order, and only to subscribers', async () => {
  const ids: string[] = []
  const instance = await listening(async ({ id }) => {
    await new Promise((resolve) => setTimeout(resolve, id === 'evt_1' ? 20 : 0))
    ids.push(id)
  })
  const otherEvents = [cloudEvent('evt_0', 'platform.cluster.updated')]
  const { body } = await instance.control('POST', '/events', {
    events: [...otherEvents, cloudEvent('evt_1'), cloudEvent('evt_2')],
  })
  expect(body).toEqual({ handled: ['evt_0', 'evt_1', 'evt_2'], failed: [] })
  expect(ids).toEqual(['evt_1', 'evt_2'])
})

test('passes an event to a handler once, despite repeated and concurrent deliveries', async () => {
  let count = 0
  const instance = await listening(async () => {
    count += 1
    await Promise.resolve()
  })
  await Promise.all([deliver(instance, 'evt_1', 'evt_1'), deliver(instance, 'evt_1')])
  expect((await deliver(instance, 'evt_1')).body).toEqual({ handled: ['evt_1'], failed: [] })
  expect(count).toBe(1)
})

test('repeats only the handler that failed', async () => {
  const calls: string[] = []
  const instance = await listening(
    () => void calls.push('steady'),
    () => {
      calls.push('shaky')
      if (calls.length < 3) throw new Error('Not now.')
    },
  )
  expect((await deliver(instance, 'evt_1', 'evt_2')).body).toEqual({
    handled: ['evt_2'],
    failed: [{ id: 'evt_1', message: 'Not now.' }],
  })
  expect((await deliver(instance, 'evt_1')).body).toEqual({ handled: ['evt_1'], failed: [] })
  expect(calls).toEqual(['steady', 'shaky', 'steady', 'shaky', 'shaky'])
})

test('remembers the ids of the last 1000 events', async () => {
  let count = 0
  const instance = await listening(() => void (count += 1))
  const ids = Array.from({ length: 1001 }, (_, index) => `evt_${index}`)
  await deliver(instance, ...ids)
  await deliver(instance, 'evt_1', 'evt_1000')
  expect(count).toBe(1001)
  await deliver(instance, 'evt_0')
  expect(count).toBe(1002)
})

test('aborts a handler at the time limit, and fails the remaining events', async () => {
  const signals: AbortSignal[] = []
  const instance = await listening(({ id }, signal) => {
    signals.push(signal)
    return id === 'evt_2' ? new Promise(() => {}) : undefined
  })
  const events = ['evt_1', 'evt_2', 'evt_3'].map((id) => cloudEvent(id))
  const headers = { 'x-platform-grace-ms': '50' }
  const response = await instance.send('POST', '/_platform/v1/events', { headers, body: JSON.stringify({ events }) })
  const body: any = await response.json()
  expect(body.handled).toEqual(['evt_1'])
  expect(body.failed.map(({ id }: { id: string }) => id)).toEqual(['evt_2', 'evt_3'])
  expect(signals).toHaveLength(2)
  expect(signals[1]?.aborted).toBe(true)
})

test('ends a subscription with its handle', async () => {
  let count = 0
  const instance = await startedInstance({
    configure: ({ eventBus, disposables }) => {
      disposables.use(eventBus.subscribe('platform.cluster.deleted', () => void (count += 1)))
    },
  })
  await instance.host.context.disposables.disposeAsync()
  await deliver(instance, 'evt_1')
  expect(count).toBe(0)
  expect((await instance.control('GET', '/describe')).body.subscriptions).toEqual([])
})

test('rejects subscriptions after configure and to unknown types', async () => {
  const { host } = await startedInstance({})
  expect(() => host.context.eventBus.subscribe('platform.cluster.deleted', () => {})).toThrow('in configure')
  const { eventBus } = instanceOf({}).host.context
  // @ts-expect-error An unknown type.
  expect(() => eventBus.subscribe('cluster.deleted', () => {})).toThrow('cluster.deleted')
})

const eventWith = (members: object) => JSON.stringify({ events: [{ ...cloudEvent('x'), ...members }] })

test.for([
  ['invalid JSON', 'x'],
  ['null', 'null'],
  ['no list of events', '{}'],
  ['an event without an id', eventWith({ id: undefined })],
  ['a null event', '{"events": [null]}'],
  ['an event without data', eventWith({ data: 1 })],
] as const)('rejects a delivery with %s', async ([, body]) => {
  let count = 0
  const instance = await listening(() => void (count += 1))
  const response = await instance.send('POST', '/_platform/v1/events', { body })
  expect([response.status, count]).toEqual([400, 0])
})

test('rejects events before the module is started', async () => {
  const instance = instanceOf({})
  await instance.host.configure()
  expect((await deliver(instance, 'evt_1')).status).toBe(409)
})

const publishing = async (count: number, data: object = {}): Promise<Instance> => {
  const instance = await startedInstance({})
  for (let index = 0; index < count; index += 1) {
    await instance.host.context.eventBus.publish('module.sample.done', { index, ...data }, { subject: `s${index}` })
  }
  return instance
}

test('published events are sent with the next response, once, and do not change with their data', async () => {
  const { host, send } = await startedInstance({})
  const data = { index: 0 }
  await host.context.eventBus.publish('module.sample.done', data, { subject: 's0' })
  data.index = 1
  await host.context.eventBus.publish('module.sample.done', data, { subject: 's1' })
  expect(publishedIn(await send('GET', '/api/sample'))).toEqual([
    { type: 'module.sample.done', subject: 's0', data: { index: 0 } },
    { type: 'module.sample.done', subject: 's1', data: { index: 1 } },
  ])
  expect((await send('GET', '/api/sample')).headers.has('x-platform-published')).toBe(false)
})

test('published events are not sent with the response to an aborted request', async () => {
  const { send } = await publishing(1)
  expect(publishedIn(await send('GET', '/api/sample', { signal: AbortSignal.abort() }))).toEqual([])
  expect(publishedIn(await send('GET', '/api/sample'))).toHaveLength(1)
})

test.for([
  ['at most 20 events', 41, '', [20, 20, 1]],
  ['as many events as fit into its header', 5, 'ä'.repeat(2000), [2, 2, 1]],
] as const)('a response carries %s, in order', async ([, count, text, counts]) => {
  const { send } = await publishing(count, { text })
  const responses = [await send('GET', '/x'), await send('GET', '/x'), await send('GET', '/x')]
  const events = responses.map(publishedIn)
  expect(events.map(({ length }) => length)).toEqual(counts)
  expect(events.flat().map(({ data }) => data['index'])).toEqual(Array.from({ length: count }, (_, index) => index))
  for (const { headers } of responses)
    expect(headers.get('x-platform-published')?.length).toBeLessThanOrEqual(publishedLimits.headerBytes)
})

test('the largest valid event fits into a response', async () => {
  const { host, send } = await startedInstance({})
  const type = `module.sample.${'x'.repeat(200 - 'module.sample.'.length)}` as const
  const subject = '\u0001'.repeat(200)
  const emptyBytes = JSON.stringify({ text: '' }).length
  await host.context.eventBus.publish(type, { text: 'x'.repeat(8192 - emptyBytes) }, { subject })
  const response = await send('GET', '/x')
  expect(publishedIn(response)).toHaveLength(1)
  expect(response.headers.get('x-platform-published')?.length).toBeLessThanOrEqual(publishedLimits.headerBytes)
})

const circular: Record<string, unknown> = {}
circular['self'] = circular
const deepData = JSON.parse(`${'{"a":'.repeat(17)}1${'}'.repeat(17)}`)

test.for([
  ['of the platform', 'platform.cluster.deleted', {}],
  ['of another module', 'module.other.done', {}],
  ['of a module with the same prefix', 'module.sample2.done', {}],
  ['without a name', 'module.sample.', {}],
  ['with a space in its name', 'module.sample.a b', {}],
  ['with a trailing dot', 'module.sample.a.', {}],
  ['with a long name', `module.sample.${'x'.repeat(200)}`, {}],
  ['with a list as data', 'module.sample.done', []],
  ['with a text as data', 'module.sample.done', 'x'],
  ['without data', 'module.sample.done', undefined],
  ['with circular data', 'module.sample.done', circular],
  ['with data that JSON does not support', 'module.sample.done', { big: 1n }],
  ['with too much data', 'module.sample.done', { text: 'x'.repeat(8192) }],
  ['with too many bytes of data', 'module.sample.done', { text: 'ä'.repeat(4096) }],
  ['with deeply nested data', 'module.sample.done', deepData],
] as const)('rejects an event %s', async ([, type, data]) => {
  const { host, send } = await startedInstance({})
  await expect(host.context.eventBus.publish(type as never, data as never)).rejects.toThrow()
  expect(publishedIn(await send('GET', '/x'))).toEqual([])
})

test('queues at most 1000 events', async () => {
  const { host } = await publishing(1000)
  await expect(host.context.eventBus.publish('module.sample.done', {})).rejects.toThrow('1000')
})
