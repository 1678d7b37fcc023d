import { randomUUID } from 'node:crypto'
import { BatchGetCommand, BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { clientOf, rejectionOf, TestTable, useStore } from './support.ts'

const store = useStore({ onDisk: true })

const check = (pk: string, sk: string, v: number) => ({
  ConditionCheck: {
    TableName: store.table.name,
    Key: { pk, sk },
    ConditionExpression: 'v = :v',
    ExpressionAttributeValues: { ':v': v },
  },
})

const removal = (pk: string, sk: string) => ({ Delete: { TableName: store.table.name, Key: { pk, sk } } })

const puts = (pk: string, count: number) =>
  Array.from({ length: count }, (_, k) => store.table.putMember({ pk, sk: String(k).padStart(3, '0') }))

const countOf = async (pk: string) => (await store.table.all('pk = :p', { ':p': pk })).length

test('performs puts, updates, deletes and checks together', async () => {
  const { table } = store
  await table.put({ pk: 'together', sk: 'deleted' })
  await table.put({ pk: 'together', sk: 'checked', v: 1 })
  await table.transact([
    table.putMember({ pk: 'together', sk: 'put', v: 1 }),
    table.addMember('together', 'updated', 2),
    removal('together', 'deleted'),
    check('together', 'checked', 1),
  ])
  const items = await table.all('pk = :p', { ':p': 'together' })
  expect(items).toEqual([
    { pk: 'together', sk: 'checked', v: 1 },
    { pk: 'together', sk: 'put', v: 1 },
    { pk: 'together', sk: 'updated', n: 2 },
  ])
})

test('a failed condition cancels all members, with a reason for each', async () => {
  const { table } = store
  await table.put({ pk: 'cancel', sk: 'taken', v: 1 })
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' }
  const error = await rejectionOf(
    table.transact([
      table.putMember({ pk: 'cancel', sk: 'new' }),
      table.putMember({ pk: 'cancel', sk: 'taken' }, { ...condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }),
      check('cancel', 'absent', 99),
    ]),
  )
  expect(error.name).toBe('TransactionCanceledException')
  expect(error.message).toBe(
    'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, ConditionalCheckFailed]',
  )
  const failure = { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed' }
  const shownItem = { pk: { S: 'cancel' }, sk: { S: 'taken' }, v: { N: '1' } }
  expect(error.CancellationReasons).toEqual([{ Code: 'None' }, { ...failure, Item: shownItem }, failure])
  expect(await table.item('cancel', 'new')).toBeUndefined()
})

test('accepts at most 100 members', async () => {
  await store.table.transact(puts('100 members', 100))
  expect(await countOf('100 members')).toBe(100)
  expect((await rejectionOf(store.table.transact(puts('too many', 101)))).name).toBe('ValidationException')
  expect(await countOf('too many')).toBe(0)
})

test('rejects two members with the same item', async () => {
  const members = [store.table.putMember({ pk: 'twice', sk: '1' }), store.table.addMember('twice', '1', 1)]
  const message = expect.stringContaining('cannot include multiple operations on one item')
  expect(await rejectionOf(store.table.transact(members))).toMatchObject({ name: 'ValidationException', message })
})

test('executes a transaction with a token once after its cancellation, also when sent concurrently', async () => {
  const { table } = store
  const ClientRequestToken = randomUUID()
  const members = () => [table.addMember('token', '1', 1), check('token', 'gate', 1)]
  const send = () => table.transact(members(), { ClientRequestToken })
  expect((await rejectionOf(send())).name).toBe('TransactionCanceledException')
  await table.put({ pk: 'token', sk: 'gate', v: 1 })
  await Promise.all([send(), send(), send()])
  await send()
  expect(await table.item('token', '1')).toHaveProperty('n', 1)
})

test('recognises a token after a restart', async () => {
  await using folder = await temporaryFolder()
  const dataDir = folder.path
  const ClientRequestToken = randomUUID()
  const first = await startDynamoDb({ dataDir })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  await table.transact([table.addMember('token', '1', 1)], { ClientRequestToken })
  await first.close()
  const second = await startDynamoDb({ dataDir })
  const reopenedTable = new TestTable(clientOf(second.url), table.name)
  await reopenedTable.transact([reopenedTable.addMember('token', '1', 1)], { ClientRequestToken })
  const error = await rejectionOf(
    reopenedTable.transact([reopenedTable.addMember('token', '1', 2)], { ClientRequestToken }),
  )
  expect(error.name).toBe('IdempotentParameterMismatchException')
  expect(await reopenedTable.item('token', '1')).toHaveProperty('n', 1)
  await second.close()
})

test('applies every one of 200 concurrent additions', async () => {
  const add = () => store.table.update('add', '1', 'ADD n :n', { ':n': 1 })
  await Promise.allSettled(Array.from({ length: 200 }, add))
  expect(await store.table.item('add', '1')).toHaveProperty('n', 200)
})

type Requests = NonNullable<ConstructorParameters<typeof BatchWriteCommand>[0]['RequestItems']>[string]

const write = (requests: Requests) =>
  store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))

const read = (Keys: Record<string, string>[]) =>
  store.table.documents.send(new BatchGetCommand({ RequestItems: { [store.table.name]: { Keys } } }))

const keys = (pk: string, count: number) => Array.from({ length: count }, (_, k) => ({ pk, sk: `i${k}` }))
const putRequests = (pk: string, count: number) => keys(pk, count).map((Item) => ({ PutRequest: { Item } }))

test.each<[string, () => Promise<unknown>]>([
  ['26 writes', () => write(putRequests('many', 26))],
  ['one item written twice', () => write([...putRequests('twice', 1), ...putRequests('twice', 1)])],
  ['101 reads', () => read(keys('many', 101))],
])('rejects a batch with %s', async (_name, call) => {
  expect((await rejectionOf(call())).name).toBe('ValidationException')
})

test('a batch puts and deletes 25 items, and another reads 100 and omits missing ones', async () => {
  await store.table.put({ pk: 'hundred', sk: 'gone' })
  const deletion = { DeleteRequest: { Key: { pk: 'hundred', sk: 'gone' } } }
  expect((await write([...putRequests('hundred', 24), deletion])).UnprocessedItems).toEqual({})
  expect(await countOf('hundred')).toBe(24)
  const { Responses, UnprocessedKeys } = await read(keys('hundred', 100))
  expect(UnprocessedKeys).toEqual({})
  const items = Responses?.[store.table.name]
  expect(items).toHaveLength(24)
  expect(items).toEqual(expect.arrayContaining(keys('hundred', 24)))
})

test('a batch reads up to 16 MB, and returns the other keys as unprocessed', async () => {
  for (const key of keys('large', 50)) await store.table.put({ ...key, d: 'x'.repeat(390 * 1024) })
  const { Responses, UnprocessedKeys } = await read(keys('large', 50))
  expect(Responses?.[store.table.name]).toHaveLength(42)
  expect(UnprocessedKeys?.[store.table.name]?.Keys).toHaveLength(8)
})
