import { publishedLimits } from '@platform/modules/protocol'
import { expect, test } from 'vitest'
import { type Instance, publishedIn, startedInstance } from '../support/sdk-instance.ts'

/** A started module that has published numbered events. */
const publishing = async (count: number, data: object = {}): Promise<Instance> => {
  const instance = await startedInstance({})
  for (let index = 0; index < count; index += 1) {
    await instance.host.context.eventBus.publish('module.sample.done', { index, ...data }, { subject: `s${index}` })
  }
  return instance
}

test('events are sent with the next response, once', async () => {
  const { send } = await publishing(2)
  expect(publishedIn(await send('GET', '/api/sample'))).toEqual([
    { type: 'module.sample.done', subject: 's0', data: { index: 0 } },
    { type: 'module.sample.done', subject: 's1', data: { index: 1 } },
  ])
  expect((await send('GET', '/api/sample')).headers.has('x-platform-published')).toBe(false)
})

test('events are not sent with the response to an aborted request', async () => {
  const { send } = await publishing(1)
  expect(publishedIn(await send('GET', '/api/sample', { signal: AbortSignal.abort() }))).toEqual([])
  expect(publishedIn(await send('GET', '/api/sample'))).toHaveLength(1)
})

test('a response carries at most 20 events, in order', async () => {
  const { send } = await publishing(2 * publishedLimits.events + 1)
  const counts: number[] = []
  const indexes: unknown[] = []
  for (let requests = 0; requests < 3; requests += 1) {
    const events = publishedIn(await send('GET', '/x'))
    counts.push(events.length)
    indexes.push(...events.map(({ data }) => data['index']))
  }
  expect(counts).toEqual([20, 20, 1])
  expect(indexes).toEqual(Array.from({ length: 41 }, (_, index) => index))
})

test('a response carries as many events as fit into its header', async () => {
  const { send } = await publishing(5, { text: 'ä'.repeat(2000) })
  const sizes: number[] = []
  const indexes: unknown[] = []
  while (indexes.length < 5) {
    const response = await send('GET', '/x')
    sizes.push(response.headers.get('x-platform-published')?.length ?? 0)
    indexes.push(...publishedIn(response).map(({ data }) => data['index']))
  }
  expect(indexes).toEqual([0, 1, 2, 3, 4])
  expect(Math.max(...sizes)).toBeLessThanOrEqual(publishedLimits.headerBytes)
  expect(sizes.length).toBe(3)
})

test('the largest valid event fits into a response', async () => {
  const { host, send } = await startedInstance({})
  const type = `module.sample.${'x'.repeat(200 - 'module.sample.'.length)}` as const
  const subject = '\u0001'.repeat(200)
  const empty = JSON.stringify({ text: '' }).length
  await host.context.eventBus.publish(type, { text: 'x'.repeat(8192 - empty) }, { subject })
  const response = await send('GET', '/x')
  expect(publishedIn(response)).toHaveLength(1)
  expect(response.headers.get('x-platform-published')?.length).toBeLessThanOrEqual(publishedLimits.headerBytes)
})

const circular: Record<string, unknown> = {}
circular['self'] = circular
const deep = JSON.parse(`${'{"a":'.repeat(17)}1${'}'.repeat(17)}`)

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
  ['with deeply nested data', 'module.sample.done', deep],
] as const)('rejects an event %s', async ([, type, data]) => {
  const { host, send } = await startedInstance({})
  await expect(host.context.eventBus.publish(type as never, data as never)).rejects.toThrow()
  expect(publishedIn(await send('GET', '/x'))).toEqual([])
})

test('a published event does not change with its data', async () => {
  const { host, send } = await startedInstance({})
  const data = { count: 1 }
  await host.context.eventBus.publish('module.sample.done', data)
  data.count = 2
  expect(publishedIn(await send('GET', '/x'))).toMatchObject([{ data: { count: 1 } }])
})

test('queues at most 1000 events', async () => {
  const { host } = await publishing(1000)
  await expect(host.context.eventBus.publish('module.sample.done', {})).rejects.toThrow('1000')
})
