import { BatchGetCommand, BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test } from 'vitest'
import { refusalOf, TestTable, useStore } from './support/table.ts'

const store = useStore()

type Requests = NonNullable<ConstructorParameters<typeof BatchWriteCommand>[0]['RequestItems']>[string]

const write = (requests: Requests) =>
  store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))
const read = (Keys: Record<string, string>[]) =>
  store.table.documents.send(new BatchGetCommand({ RequestItems: { [store.table.name]: { Keys } } }))
const keys = (pk: string, count: number) => Array.from({ length: count }, (_, k) => ({ pk, sk: `i${k}` }))
const puts = (pk: string, count: number) => keys(pk, count).map((Item) => ({ PutRequest: { Item } }))

test('a batch puts and deletes, in several tables at once', async () => {
  const other = new TestTable(store.table.client)
  await other.create()
  await store.table.put({ pk: 'mixed', sk: 'gone' })
  const requests = [...puts('mixed', 20), { DeleteRequest: { Key: { pk: 'mixed', sk: 'gone' } } }]
  const answer = await store.table.documents.send(
    new BatchWriteCommand({ RequestItems: { [store.table.name]: requests, [other.name]: puts('mixed', 4) } }),
  )
  expect(answer.UnprocessedItems).toEqual({})
  expect((await store.table.query('pk = :p', { ':p': 'mixed' })).Count).toBe(20)
  expect((await other.query('pk = :p', { ':p': 'mixed' })).Count).toBe(4)
})

test('a batch puts index rows too', async () => {
  await write([{ PutRequest: { Item: { pk: 'row', sk: '1', g2pk: 'batch', a: 1 } } }])
  const page = await store.table.query('g2pk = :g', { ':g': 'batch' }, { IndexName: 'byG2' })
  expect(page.Items).toEqual([{ pk: 'row', sk: '1', g2pk: 'batch', a: 1 }])
})

test.each<[string, () => Promise<unknown>]>([
  ['26 writes', () => write(puts('many', 26))],
  ['one item written twice', () => write([...puts('twice', 1), ...puts('twice', 1)])],
  ['no write', () => write([])],
  ['a write without a key', () => write([...puts('keyless', 1), { PutRequest: { Item: { pk: 'keyless' } } }])],
  ['101 reads', () => read(keys('many', 101))],
  ['one item read twice', () => read([...keys('twice', 1), ...keys('twice', 1)])],
  ['a read of half a key', () => read([{ pk: 'half' }])],
])('a batch with %s is refused', async (_name, call) => {
  expect((await refusalOf(call())).name).toBe('ValidationException')
})

test('a refused batch writes nothing', async () => {
  await refusalOf(write([...puts('nothing', 1), { PutRequest: { Item: { pk: 'nothing' } } }]))
  expect(await store.table.item('nothing', 'i0')).toBeUndefined()
})

test('100 items are read at once, and missing ones left out', async () => {
  await write(puts('hundred', 25))
  const { Responses, UnprocessedKeys } = await read(keys('hundred', 100))
  expect(UnprocessedKeys).toEqual({})
  expect(Responses?.[store.table.name]?.toSorted(bySortKey)).toEqual(keys('hundred', 25).toSorted(bySortKey))
})

test('a batch reads up to 16 MB and hands back the rest', async () => {
  for (const key of keys('large', 50)) await store.table.put({ ...key, d: 'x'.repeat(390 * 1024) })
  const { Responses, UnprocessedKeys } = await read(keys('large', 50))
  expect(Responses?.[store.table.name]).toHaveLength(42)
  expect(UnprocessedKeys?.[store.table.name]?.Keys).toHaveLength(8)
})

function bySortKey(one: Record<string, unknown>, other: Record<string, unknown>) {
  return String(one['sk']).localeCompare(String(other['sk']))
}
