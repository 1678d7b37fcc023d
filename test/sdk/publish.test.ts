import { publishedLimits } from '@platform/modules/protocol'
import { expect, test } from 'vitest'
import { type Instance, publishedIn, startedInstance } from '../support/sdk-instance.ts'

/** A started module that has published events, numbered from 0. */
const publishing = async (count: number, data: object = {}): Promise<Instance> => {
  const instance = await startedInstance({})
  for (let index = 0; index < count; index += 1) {
    await instance.host.context.eventBus.publish('module.sample.done', { index, ...data }, { subject: `s${index}` })
  }
  return instance
}

test('published events leave with the next answer, once', async () => {
  const { ask } = await publishing(2)
  expect(publishedIn(await ask('GET', '/api/sample'))).toEqual([
    { type: 'module.sample.done', subject: 's0', data: { index: 0 } },
    { type: 'module.sample.done', subject: 's1', data: { index: 1 } },
  ])
  expect((await ask('GET', '/api/sample')).headers.has('x-platform-published')).toBe(false)
})

test('published events do not leave with an answer that nobody waits for any more', async () => {
  const { ask } = await publishing(1)
  expect(publishedIn(await ask('GET', '/api/sample', { signal: AbortSignal.abort() }))).toEqual([])
  expect(publishedIn(await ask('GET', '/api/sample'))).toHaveLength(1)
})

test('what does not fit into an answer by number leaves with the next ones, in order', async () => {
  const { ask } = await publishing(2 * publishedLimits.events + 1)
  const counts: number[] = []
  const indexes: unknown[] = []
  for (let answers = 0; answers < 3; answers += 1) {
    const events = publishedIn(await ask('GET', '/x'))
    counts.push(events.length)
    indexes.push(...events.map(({ data }) => data['index']))
  }
  expect(counts).toEqual([20, 20, 1])
  expect(indexes).toEqual(Array.from({ length: 41 }, (_, index) => index))
})

test('what does not fit into an answer by size leaves with the next ones', async () => {
  const { ask } = await publishing(5, { text: 'ä'.repeat(2000) })
  const sizes: number[] = []
  const indexes: unknown[] = []
  while (indexes.length < 5) {
    const response = await ask('GET', '/x')
    sizes.push(response.headers.get('x-platform-published')?.length ?? 0)
    indexes.push(...publishedIn(response).map(({ data }) => data['index']))
  }
  expect(indexes).toEqual([0, 1, 2, 3, 4])
  expect(Math.max(...sizes)).toBeLessThanOrEqual(publishedLimits.headerBytes)
  expect(sizes.length).toBe(3)
})

test('the largest event that can be published fits into an answer', async () => {
  const { host, ask } = await startedInstance({})
  const type = `module.sample.${'x'.repeat(200 - 'module.sample.'.length)}` as const
  const subject = '\u0001'.repeat(200)
  const empty = JSON.stringify({ text: '' }).length
  await host.context.eventBus.publish(type, { text: 'x'.repeat(8192 - empty) }, { subject })
  const response = await ask('GET', '/x')
  expect(publishedIn(response)).toHaveLength(1)
  expect(response.headers.get('x-platform-published')?.length).toBeLessThanOrEqual(publishedLimits.headerBytes)
})

const circular: Record<string, unknown> = {}
circular['self'] = circular
const deep = JSON.parse(`${'{"a":'.repeat(17)}1${'}'.repeat(17)}`)

test.for([
  ['of the platform', 'platform.cluster.deleted', {}],
  ['of another module', 'module.other.done', {}],
  ['of a module whose id begins like its own', 'module.sample2.done', {}],
  ['without a name', 'module.sample.', {}],
  ['with a name that holds a space', 'module.sample.a b', {}],
  ['with a name that ends in a dot', 'module.sample.a.', {}],
  ['with a name that is too long', `module.sample.${'x'.repeat(200)}`, {}],
  ['whose data are a list', 'module.sample.done', []],
  ['whose data are a text', 'module.sample.done', 'x'],
  ['without data', 'module.sample.done', undefined],
  ['whose data refer to themselves', 'module.sample.done', circular],
  ['whose data JSON cannot hold', 'module.sample.done', { big: 1n }],
  ['whose data are too large', 'module.sample.done', { text: 'x'.repeat(8192) }],
  ['whose data are too large in bytes', 'module.sample.done', { text: 'ä'.repeat(4096) }],
  ['whose data are too deep', 'module.sample.done', deep],
] as const)('an event %s cannot be published', async ([, type, data]) => {
  const { host, ask } = await startedInstance({})
  await expect(host.context.eventBus.publish(type as never, data as never)).rejects.toThrow()
  expect(publishedIn(await ask('GET', '/x'))).toEqual([])
})

test('what was published does not change any more', async () => {
  const { host, ask } = await startedInstance({})
  const data = { count: 1 }
  await host.context.eventBus.publish('module.sample.done', data)
  data.count = 2
  expect(publishedIn(await ask('GET', '/x'))).toMatchObject([{ data: { count: 1 } }])
})

test('a module that nobody asks cannot fill its memory with events', async () => {
  const { host } = await publishing(1000)
  await expect(host.context.eventBus.publish('module.sample.done', {})).rejects.toThrow('1000')
})
