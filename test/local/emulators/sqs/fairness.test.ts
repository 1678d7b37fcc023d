import { expect, test } from 'vitest'
import { serveQueue, type TestQueue } from './support.ts'

const flood = (queue: TestQueue, group: string, count: number) =>
  queue.sendBatch(
    Array.from({ length: count }, (_, index) => ({
      Id: `${group}-${index}`,
      MessageBody: `${group}-${index}`,
      MessageGroupId: group,
    })),
  )

const bodies = async (queue: TestQueue, count: number) =>
  (await queue.receive({ MaxNumberOfMessages: count })).map(({ Body }) => Body)

test('a message of a quiet group comes before those of a group that floods the queue', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (let part = 0; part < 3; part++) await flood(queue, 'noisy', 10)
  await flood(queue, 'quiet', 1)
  expect(await bodies(queue, 2)).toEqual(['noisy-0', 'quiet-0'])
})

test('a group that has messages under way waits for one that has none', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  await flood(queue, 'noisy', 10)
  expect(await bodies(queue, 4)).toEqual(['noisy-0', 'noisy-1', 'noisy-2', 'noisy-3'])
  await flood(queue, 'quiet', 3)
  expect(await bodies(queue, 3)).toEqual(['quiet-0', 'quiet-1', 'quiet-2'])
})

test('messages without a group, or of one group, come in the order in which they were sent', async () => {
  const { queue } = await serveQueue({ VisibilityTimeout: '600' })
  for (const body of ['a', 'b', 'c']) await queue.send(body)
  expect(await bodies(queue, 3)).toEqual(['a', 'b', 'c'])
  await flood(queue, 'one', 5)
  expect(await bodies(queue, 5)).toEqual(['one-0', 'one-1', 'one-2', 'one-3', 'one-4'])
})
