import { TransactGetCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test } from 'vitest'
import { refusalOf, TestTable, useStore } from './support/table.ts'
import type { TransactItems } from './support/table.ts'

const store = useStore()

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

test('puts, updates, deletes and checks are done together', async () => {
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

test('a failed condition cancels all, and every member has its reason in its place', async () => {
  const { table } = store
  await table.put({ pk: 'cancel', sk: 'taken', v: 1 })
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' }
  const refusal = await refusalOf(
    table.transact([
      table.putMember({ pk: 'cancel', sk: 'new' }),
      table.putMember({ pk: 'cancel', sk: 'taken' }, { ...condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }),
      check('cancel', 'absent', 99),
    ]),
  )
  expect(refusal.name).toBe('TransactionCanceledException')
  expect(refusal.message).toBe(
    'Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed, ConditionalCheckFailed]',
  )
  const failure = { Code: 'ConditionalCheckFailed', Message: 'The conditional request failed' }
  const shown = { pk: { S: 'cancel' }, sk: { S: 'taken' }, v: { N: '1' } }
  expect(refusal.CancellationReasons).toEqual([{ Code: 'None' }, { ...failure, Item: shown }, failure])
  expect(await table.item('cancel', 'new')).toBeUndefined()
})

test('a member that cannot be applied cancels all with a validation error', async () => {
  const { table } = store
  await table.put({ pk: 'invalid', sk: 'text', n: 'not a number' })
  const members = [table.putMember({ pk: 'invalid', sk: 'new' }), table.addMember('invalid', 'text', 1)]
  const refusal = await refusalOf(table.transact(members))
  expect(refusal.CancellationReasons).toMatchObject([{ Code: 'None' }, { Code: 'ValidationError' }])
  expect(await table.item('invalid', 'new')).toBeUndefined()
})

test('an item over 400 KB cancels the transaction', async () => {
  const { table } = store
  await table.put({ pk: 'large', sk: '1', d: 'x'.repeat(399 * 1024) })
  const growth = {
    TableName: table.name,
    Key: { pk: 'large', sk: '1' },
    UpdateExpression: 'SET e = :e',
    ExpressionAttributeValues: { ':e': 'x'.repeat(2048) },
  }
  const refusal = await refusalOf(table.transact([{ Update: growth }, table.putMember({ pk: 'large', sk: '2' })]))
  expect(refusal.CancellationReasons).toMatchObject([{ Code: 'ValidationError' }, { Code: 'None' }])
})

test('a transaction holds up to 100 members', async () => {
  await store.table.transact(puts('hundred', 100))
  expect(await countOf('hundred')).toBe(100)
  expect((await refusalOf(store.table.transact(puts('too many', 101)))).name).toBe('ValidationException')
  expect(await countOf('too many')).toBe(0)
})

test('a transaction holds up to 4 MB', async () => {
  const members = Array.from({ length: 11 }, (_, k) =>
    store.table.putMember({ pk: 'megabytes', sk: String(k), d: 'x'.repeat(390 * 1024) }),
  )
  expect((await refusalOf(store.table.transact(members))).name).toBe('ValidationException')
  await store.table.transact(members.slice(0, 10))
  expect(await countOf('megabytes')).toBe(10)
})

test.each<[string, () => TransactItems, RegExp]>([
  ['no member', () => [], /length greater than or equal to 1/],
  [
    'two members on one item',
    () => [store.table.putMember({ pk: 'twice', sk: '1' }), store.table.addMember('twice', '1', 1)],
    /cannot include multiple operations on one item/,
  ],
  [
    'two members on one item, one of which fails its condition',
    () => [check('twice', '1', 1), store.table.addMember('twice', '1', 1)],
    /cannot include multiple operations on one item/,
  ],
  [
    'a check without a condition',
    () => [{ ConditionCheck: { ...removal('a', 'b').Delete, ConditionExpression: undefined } }],
    /conditionCheck.conditionExpression/,
  ],
  [
    'two kinds in one member',
    () => [{ ...removal('a', 'b'), ...store.table.putMember({ pk: 'a', sk: 'b' }) }],
    /can only contain one/,
  ],
])('a transaction with %s is refused', async (_name, members, message) => {
  const refusal = await refusalOf(store.table.transact(members()))
  expect(refusal).toMatchObject({ name: 'ValidationException', message: expect.stringMatching(message) })
})

test('a transaction spans tables', async () => {
  const other = new TestTable(store.table.client)
  await other.create()
  await store.table.transact([store.table.putMember({ pk: 'span', sk: '1' }), other.putMember({ pk: 'span', sk: '1' })])
  expect(await other.item('span', '1')).toEqual(await store.table.item('span', '1'))
})

test('index rows follow a transaction', async () => {
  const { table } = store
  const find = (g1pk: string) => table.all('g1pk = :g', { ':g': g1pk }, { IndexName: 'byG1' })
  await table.put({ pk: 'rows', sk: 'old', g1pk: 'rows', g1sk: 'old' })
  await table.transact([table.putMember({ pk: 'rows', sk: 'new', g1pk: 'rows', g1sk: 'new' }), removal('rows', 'old')])
  expect(await find('rows')).toEqual([{ pk: 'rows', sk: 'new', g1pk: 'rows', g1sk: 'new' }])
})

const read = (keys: [string, string][], rest: object = {}) =>
  store.table.documents.send(
    new TransactGetCommand({
      TransactItems: keys.map(([pk, sk]) => ({ Get: { TableName: store.table.name, Key: { pk, sk }, ...rest } })),
    }),
  )

test('a read transaction answers in the order asked, missing items included', async () => {
  await store.table.put({ pk: 'read', sk: '1', v: 1, w: 2 })
  const { Responses } = await read(
    [
      ['read', 'absent'],
      ['read', '1'],
    ],
    { ProjectionExpression: 'v' },
  )
  expect(Responses).toEqual([{}, { Item: { v: 1 } }])
})

test('a read transaction holds up to 100 members', async () => {
  const keys = Array.from({ length: 101 }, (_, k): [string, string] => ['read', String(k)])
  expect((await refusalOf(read(keys))).name).toBe('ValidationException')
  expect((await read(keys.slice(1))).Responses).toHaveLength(100)
})
