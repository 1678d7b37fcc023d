import { setImmediate as turn } from 'node:timers/promises'
import { inLanes } from '@platform/updates/lanes'
import { expect, test } from 'vitest'

/** Work that is done when the test says so. */
function works() {
  const begun: string[] = []
  const open = new Map<string, PromiseWithResolvers<void>>()
  const work = (item: string): Promise<void> => {
    begun.push(item)
    const ends = Promise.withResolvers<void>()
    open.set(item, ends)
    return ends.promise
  }
  return {
    begun,
    work,
    end: (item: string) => open.get(item)?.resolve(),
    fail: (item: string, error: Error) => open.get(item)?.reject(error),
  }
}

const items = ['a', 'b', 'c', 'd']

test('so many are done at once, in their order, and each once', async () => {
  const { begun, work, end } = works()
  const all = inLanes(2, items, work)
  await turn()
  expect(begun).toEqual(['a', 'b'])
  end('b')
  await turn()
  expect(begun).toEqual(['a', 'b', 'c'])
  end('c')
  await turn()
  expect(begun).toEqual(items)
  for (const item of items) end(item)
  await all
  expect(begun).toEqual(items)
})

test('no more are begun than there are, and nothing is nothing to wait for', async () => {
  const begun: string[] = []
  const work = async (item: string) => void begun.push(item)
  await inLanes(9, items, work)
  expect(begun).toEqual(items)
  await inLanes(9, [], work)
  expect(begun).toEqual(items)
})

test('after a failure nothing else is begun, and who asked hears of the first one when all has ended', async () => {
  const { begun, work, end, fail } = works()
  let isOver = false
  const heard = inLanes(2, items, work).then(
    () => undefined,
    (error: unknown) => error,
  )
  void heard.then(() => (isOver = true))
  await turn()
  fail('b', new Error('first'))
  await turn()
  expect([begun, isOver]).toEqual([['a', 'b'], false])
  end('a')
  expect(await heard).toEqual(new Error('first'))
  expect(begun).toEqual(['a', 'b'])
  const both = works()
  const all = inLanes(2, items, both.work)
  await turn()
  both.fail('b', new Error('b'))
  both.fail('a', new Error('a'))
  await expect(all).rejects.toThrow(/^b$/)
  expect(both.begun).toEqual(['a', 'b'])
})
