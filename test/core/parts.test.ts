import { forEachLimit } from '@platform/core/lib/async'
import { expect, test } from 'vitest'

/** Work that ends when it is told to. */
function heldWork() {
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const work = (item: string) => {
    const end = Promise.withResolvers<void>()
    ends.set(item, end)
    return end.promise
  }
  return { work, begun: () => [...ends.keys()].join(''), end: (item: string) => ends.get(item) }
}

/** What goes on by itself has gone on. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('so many are under way at once, and the next begins when one has ended', async () => {
  const { work, begun, end } = heldWork()
  const all = forEachLimit(2, ['a', 'b', 'c'], work)
  expect(begun()).toBe('ab')
  end('b')?.resolve()
  await settled()
  expect(begun()).toBe('abc')
  end('a')?.resolve()
  end('c')?.resolve()
  await all
})

test('when one fails nothing else is begun, and who waits hears of it once what was under way has ended', async () => {
  const { work, begun, end } = heldWork()
  let heard: unknown
  const all = forEachLimit(2, ['a', 'b', 'c', 'd'], work).catch((error: unknown) => (heard = error))
  end('a')?.reject(new Error('a failed'))
  await settled()
  expect([begun(), heard]).toEqual(['ab', undefined])
  end('b')?.resolve()
  await all
  expect([begun(), String(heard)]).toEqual(['ab', 'Error: a failed'])
})
