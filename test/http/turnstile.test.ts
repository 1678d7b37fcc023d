import { keyedSemaphore } from '@platform/http/keyed-semaphore'
import { expect, test } from 'vitest'

/** Work that goes on until it is let go. */
function held() {
  const started: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  const work = (name: string) => () =>
    new Promise<string>((resolve, reject) => {
      started.push(name)
      ends.set(name, (error) => (error ? reject(error) : resolve(name)))
    })
  return { started, work, end: (name: string, error?: Error) => ends.get(name)!(error) }
}

test('no more than so many of one name are worked on at once; the others follow in their order', async () => {
  const pass = keyedSemaphore(2)
  const { started, work, end } = held()
  const all = ['1', '2', '3', '4'].map((name) => pass('a', work(name)))
  await expect.poll(() => started).toEqual(['1', '2'])
  end('2')
  await expect.poll(() => started).toEqual(['1', '2', '3'])
  end('1')
  await expect.poll(() => started).toEqual(['1', '2', '3', '4'])
  end('3')
  end('4')
  expect(await Promise.all(all)).toEqual(['1', '2', '3', '4'])
})

test('a name that floods does not make another one wait', async () => {
  const pass = keyedSemaphore(1)
  const { started, work, end } = held()
  const flood = ['1', '2', '3'].map((name) => pass('noisy', work(name)))
  const quiet = pass('quiet', work('quiet'))
  await expect.poll(() => started).toEqual(['1', 'quiet'])
  end('quiet')
  expect(await quiet).toBe('quiet')
  for (const name of ['1', '2', '3']) {
    await expect.poll(() => started).toContain(name)
    end(name)
  }
  await Promise.all(flood)
})

test('work that fails leaves its place to the next', async () => {
  const pass = keyedSemaphore(1)
  const { started, work, end } = held()
  const failing = pass('a', work('1'))
  const next = pass('a', work('2'))
  await expect.poll(() => started).toEqual(['1'])
  end('1', new Error('broken'))
  await expect(failing).rejects.toThrow('broken')
  await expect.poll(() => started).toEqual(['1', '2'])
  end('2')
  expect(await next).toBe('2')
})
