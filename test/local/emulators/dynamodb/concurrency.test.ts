import { TransactGetCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test } from 'vitest'
import { useFolder } from './support/folder.ts'
import { useStore } from './support/table.ts'
import { rounds } from '../../../support/long.ts'

// On a disk, where batches land while reads go on.
const store = useStore({ dataDir: useFolder() })
const times = <T>(count: number, call: (number: number) => Promise<T>) =>
  Promise.allSettled(Array.from({ length: count }, (_, number) => call(number)))
const successes = (outcomes: PromiseSettledResult<unknown>[]) =>
  outcomes.filter(({ status }) => status === 'fulfilled').length

test('no addition is lost among 200 at once', async () => {
  await times(200, () => store.table.update('add', '1', 'ADD n :n', { ':n': 1 }))
  expect(await store.table.item('add', '1')).toHaveProperty('n', 200)
})

test('one of 50 racing creations wins', async () => {
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' }
  const outcomes = await times(50, (number) => store.table.put({ pk: 'race', sk: '1', number }, condition))
  expect(successes(outcomes)).toBe(1)
})

test('50 racing transactions count as often as they succeed', async () => {
  const { table } = store
  const outcomes = await times(50, (number) =>
    table.transact([table.addMember('counter', '1', 1), table.putMember({ pk: 'counted', sk: String(number) })]),
  )
  expect(successes(outcomes)).toBe(50)
  expect(await table.item('counter', '1')).toHaveProperty('n', 50)
  expect((await table.query('pk = :p', { ':p': 'counted' })).Count).toBe(50)
})

test('a single-use step is taken once by 20 racing transactions', async () => {
  const { table } = store
  await table.put({ pk: 'step', sk: '1', state: 'open' })
  const outcomes = await times(20, (number) =>
    table.transact([
      {
        Update: {
          TableName: table.name,
          Key: { pk: 'step', sk: '1' },
          UpdateExpression: 'SET #s = :closed',
          ConditionExpression: '#s = :open',
          ExpressionAttributeNames: { '#s': 'state' },
          ExpressionAttributeValues: { ':open': 'open', ':closed': 'closed' },
        },
      },
      table.putMember({ pk: 'taken', sk: String(number) }),
    ]),
  )
  expect(successes(outcomes)).toBe(1)
  expect((await table.query('pk = :p', { ':p': 'taken' })).Count).toBe(1)
})

test('read transactions never see half of a transfer', async () => {
  const { table } = store
  for (const sk of ['A', 'B']) await table.put({ pk: 'account', sk, n: 1000 })
  const bystanders = Array.from({ length: 98 }, (_, number) => `bystander ${number}`)
  const Gets = ['A', ...bystanders, 'B'].map((sk) => ({ Get: { TableName: table.name, Key: { pk: 'account', sk } } }))
  const transfers = { areDone: false }
  const sums = new Set<number>()
  const readUntilDone = async () => {
    while (!transfers.areDone) {
      const { Responses } = await table.documents.send(new TransactGetCommand({ TransactItems: Gets }))
      sums.add(Responses!.reduce((sum, { Item }) => sum + (Item?.['n'] ?? 0), 0))
    }
  }
  const each = rounds(10, 100)
  const transferOften = async () => {
    const members = [table.addMember('account', 'A', -1), table.addMember('account', 'B', 1)]
    for (let count = 0; count < each; count += 1) await table.transact(members)
  }
  const reading = times(3, readUntilDone)
  expect(successes(await times(4, transferOften))).toBe(4)
  transfers.areDone = true
  expect(successes(await reading)).toBe(3)
  expect([...sums]).toEqual([2000])
  expect(await table.item('account', 'A')).toHaveProperty('n', 1000 - 4 * each)
})
