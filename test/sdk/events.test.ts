import { type ModuleEvent } from '@platform/modules'
import { expect, test } from 'vitest'
import { type Instance, instanceOf, startedInstance } from '../support/sdk-instance.ts'

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

/** A started module with handlers of one event type. */
const listening = (...handlers: Handler[]): Promise<Instance> =>
  startedInstance({
    configure: ({ eventBus }) => {
      for (const handler of handlers) eventBus.subscribe('platform.cluster.deleted', handler)
    },
  })

const deliver = ({ control }: Instance, ...ids: string[]) =>
  control('POST', '/events', { events: ids.map((id) => cloudEvent(id)) })

test('passes an event to a handler', async () => {
  const events: unknown[] = []
  const instance = await listening((event) => void events.push(event))
  expect(await deliver(instance, 'evt_1')).toEqual({ status: 200, body: { handled: ['evt_1'], failed: [] } })
  expect(events).toEqual([
    {
      id: 'evt_1',
      type: 'platform.cluster.deleted',
      time: '2026-11-21T09:30:00.000Z',
      subject: 'clus_1',
      organisationId: 'org_acme',
      data: { clusterId: 'clus_1', name: 'berlin-1' },
    },
  ])
})

test('uses the organisation of the module for an event without one', async () => {
  const organisations: string[] = []
  const instance = await listening(({ organisationId }) => void organisations.push(organisationId))
  const { source: _source, ...event } = cloudEvent('evt_1')
  await instance.control('POST', '/events', { events: [event] })
  expect(organisations).toEqual(['org_sample'])
})

test('delivers events in order, and only to subscribers', async () => {
  const ids: string[] = []
  const instance = await listening(async ({ id }) => {
    await new Promise((resolve) => setTimeout(resolve, id === 'evt_1' ? 20 : 0))
    ids.push(id)
  })
  const others = [cloudEvent('evt_0', 'platform.cluster.updated')]
  const { body } = await instance.control('POST', '/events', {
    events: [...others, cloudEvent('evt_1'), cloudEvent('evt_2')],
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

test.for([
  ['invalid JSON', 'x'],
  ['null', 'null'],
  ['no list of events', '{}'],
  ['an event without an id', JSON.stringify({ events: [{ ...cloudEvent('x'), id: undefined }] })],
  ['a null event', '{"events": [null]}'],
  ['an event without data', JSON.stringify({ events: [{ ...cloudEvent('x'), data: 1 }] })],
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
