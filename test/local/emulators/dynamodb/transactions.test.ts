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
  const shown = { pk: { S: 'cancel' }, sk: { S: 'taken' }, v: { N: '1' } }
  expect(error.CancellationReasons).toEqual([{ Code: 'None' }, { ...failure, Item: shown }, failure])
  expect(await table.item('cancel', 'new')).toBeUndefined()
})

test('accepts at most 100 members', async () => {
  await store.table.transact(puts('hundred', 100))
  expect(await countOf('hundred')).toBe(100)
  expect((await rejectionOf(store.table.transact(puts('too many', 101)))).name).toBe('ValidationException')
  expect(await countOf('too many')).toBe(0)
})

test('accepts at most 4 MB', async () => {
  const members = Array.from({ length: 11 }, (_, k) =>
    store.table.putMember({ pk: 'megabytes', sk: String(k), d: 'x'.repeat(390 * 1024) }),
  )
  expect((await rejectionOf(store.table.transact(members))).name).toBe('ValidationException')
  await store.table.transact(members.slice(0, 10))
  expect(await countOf('megabytes')).toBe(10)
})

test('rejects two members with the same item', async () => {
  const members = [store.table.putMember({ pk: 'twice', sk: '1' }), store.table.addMember('twice', '1', 1)]
  const message = expect.stringContaining('cannot include multiple operations on one item')
  expect(await rejectionOf(store.table.transact(members))).toMatchObject({ name: 'ValidationException', message })
})

test('executes a transaction with a token once, also when sent concurrently', async () => {
  const { table } = store
  const ClientRequestToken = randomUUID()
  const send = () => table.transact([table.addMember('token', '1', 1)], { ClientRequestToken })
  await Promise.all([send(), send(), send()])
  await send()
  expect(await table.item('token', '1')).toHaveProperty('n', 1)
})

test('a cancelled transaction does not use its token', async () => {
  const { table } = store
  const { name: TableName } = table
  const condition = { ConditionExpression: 'v = :v', ExpressionAttributeValues: { ':v': 1 } }
  const precondition = { ConditionCheck: { TableName, Key: { pk: 'token', sk: 'gate' }, ...condition } }
  const ClientRequestToken = randomUUID()
  const send = () => table.transact([table.addMember('token', '3', 1), precondition], { ClientRequestToken })
  expect((await rejectionOf(send())).name).toBe('TransactionCanceledException')
  await table.put({ pk: 'token', sk: 'gate', v: 1 })
  await send()
  expect(await table.item('token', '3')).toHaveProperty('n', 1)
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
  const reopened = new TestTable(clientOf(second.url), table.name)
  await reopened.transact([reopened.addMember('token', '1', 1)], { ClientRequestToken })
  const error = await rejectionOf(reopened.transact([reopened.addMember('token', '1', 2)], { ClientRequestToken }))
  expect(error.name).toBe('IdempotentParameterMismatchException')
  expect(await reopened.item('token', '1')).toHaveProperty('n', 1)
  await second.close()
})

const times = <T>(count: number, call: (number: number) => Promise<T>) =>
  Promise.allSettled(Array.from({ length: count }, (_, number) => call(number)))

test('applies every one of 200 concurrent additions', async () => {
  await times(200, () => store.table.update('add', '1', 'ADD n :n', { ':n': 1 }))
  expect(await store.table.item('add', '1')).toHaveProperty('n', 200)
})

test('one of 50 concurrent creations succeeds', async () => {
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' }
  const outcomes = await times(50, (number) => store.table.put({ pk: 'race', sk: '1', number }, condition))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

type Requests = NonNullable<ConstructorParameters<typeof BatchWriteCommand>[0]['RequestItems']>[string]

const write = (requests: Requests) =>
  store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))

const read = (Keys: Record<string, string>[]) =>
  store.table.documents.send(new BatchGetCommand({ RequestItems: { [store.table.name]: { Keys } } }))

const keys = (pk: string, count: number) => Array.from({ length: count }, (_, k) => ({ pk, sk: `i${k}` }))
const putRequests = (pk: string, count: number) => keys(pk, count).map((Item) => ({ PutRequest: { Item } }))

test('a batch puts and deletes in several tables', async () => {
  const other = new TestTable(store.table.client)
  await other.create()
  await store.table.put({ pk: 'mixed', sk: 'gone' })
  const requests = [...putRequests('mixed', 20), { DeleteRequest: { Key: { pk: 'mixed', sk: 'gone' } } }]
  const output = await store.table.documents.send(
    new BatchWriteCommand({ RequestItems: { [store.table.name]: requests, [other.name]: putRequests('mixed', 4) } }),
  )
  expect(output.UnprocessedItems).toEqual({})
  expect((await store.table.query('pk = :p', { ':p': 'mixed' })).Count).toBe(20)
  expect((await other.query('pk = :p', { ':p': 'mixed' })).Count).toBe(4)
})

test.each<[string, () => Promise<unknown>]>([
  ['26 writes', () => write(putRequests('many', 26))],
  ['one item written twice', () => write([...putRequests('twice', 1), ...putRequests('twice', 1)])],
  ['101 reads', () => read(keys('many', 101))],
])('rejects a batch with %s', async (_name, call) => {
  expect((await rejectionOf(call())).name).toBe('ValidationException')
})

test('a batch reads 100 items, and omits missing ones', async () => {
  await write(putRequests('hundred', 25))
  const { Responses, UnprocessedKeys } = await read(keys('hundred', 100))
  expect(UnprocessedKeys).toEqual({})
  expect(Responses?.[store.table.name]?.toSorted(bySortKey)).toEqual(keys('hundred', 25).toSorted(bySortKey))
})

test('a batch reads up to 16 MB, and returns the other keys as unprocessed', async () => {
  for (const key of keys('large', 50)) await store.table.put({ ...key, d: 'x'.repeat(390 * 1024) })
  const { Responses, UnprocessedKeys } = await read(keys('large', 50))
  expect(Responses?.[store.table.name]).toHaveLength(42)
  expect(UnprocessedKeys?.[store.table.name]?.Keys).toHaveLength(8)
})

function bySortKey(one: Record<string, unknown>, other: Record<string, unknown>) {
  return String(one['sk']).localeCompare(String(other['sk']))
}
