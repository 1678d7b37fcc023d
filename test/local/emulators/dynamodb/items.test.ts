import { PutItemCommand } from '@aws-sdk/client-dynamodb'
import { expect, test, beforeAll } from 'vitest'
import { rejectionOf, useStore, type TestTable } from './support/table.ts'

const store = useStore()

test('every type of attribute comes back as it was put', async () => {
  const item = {
    pk: 'types',
    sk: 'all',
    text: 'é漢😀',
    empty: '',
    number: 12345.678,
    negative: -0.001,
    bytes: new Uint8Array([0, 255, 1]),
    yes: true,
    nothing: null,
    list: [1, 'a', { x: [] }],
    map: { deep: { er: { v: 1 } } },
    texts: new Set(['a', 'b']),
    numbers: new Set([1, 2.5]),
  }
  await store.table.put(item)
  expect(await store.table.item('types', 'all')).toEqual(item)
})

test('a put replaces the whole item and can show the old one', async () => {
  await store.table.put({ pk: 'replace', sk: '1', v: 1, old: true })
  const answer = await store.table.put({ pk: 'replace', sk: '1', v: 2 }, { ReturnValues: 'ALL_OLD' })
  expect(answer.Attributes).toEqual({ pk: 'replace', sk: '1', v: 1, old: true })
  expect(await store.table.item('replace', '1')).toEqual({ pk: 'replace', sk: '1', v: 2 })
})

test('a failed condition leaves the item alone', async () => {
  await store.table.put({ pk: 'condition', sk: '1', v: 1 })
  const put = store.table.put({ pk: 'condition', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' })
  const refusal = await rejectionOf(put)
  expect(refusal).toMatchObject({ name: 'ConditionalCheckFailedException', message: 'The conditional request failed' })
  expect(refusal.Item).toBeUndefined()
  expect(await store.table.item('condition', '1')).toHaveProperty('v', 1)
})

test.each(['put', 'update', 'delete'] as const)(
  'a failed condition of a %s shows the item when asked to',
  async (kind) => {
    const sk = `shown-${kind}`
    await store.table.put({ pk: 'condition', sk, v: 1 })
    const rest = { ConditionExpression: 'v = :no', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }
    const values = { ExpressionAttributeValues: { ':no': 0 } }
    const calls = {
      put: () => store.table.put({ pk: 'condition', sk }, { ...rest, ...values }),
      update: () => store.table.update('condition', sk, 'REMOVE w', { ':no': 0 }, rest),
      delete: () => store.table.delete('condition', sk, { ...rest, ...values }),
    }
    const refusal = await rejectionOf(calls[kind]())
    expect(refusal.Item).toEqual({ pk: { S: 'condition' }, sk: { S: sk }, v: { N: '1' } })
  },
)

test('an update computes from the old item and can show the new one', async () => {
  await store.table.put({ pk: 'update', sk: '1', n: 5, list: [1], keep: 'x' })
  const answer = await store.table.update(
    'update',
    '1',
    'SET n = n + :one, c = if_not_exists(c, :ten) + :one, #l = list_append(#l, :l), #m = :m',
    { ':one': 1, ':ten': 10, ':l': [2, 3], ':m': { a: { b: 1 } } },
    { ReturnValues: 'ALL_NEW', ExpressionAttributeNames: { '#m': 'map', '#l': 'list' } },
  )
  const expected = { pk: 'update', sk: '1', n: 6, c: 11, list: [1, 2, 3], map: { a: { b: 1 } }, keep: 'x' }
  expect(answer.Attributes).toEqual(expected)
})

test('an update reaches into maps and lists', async () => {
  await store.table.put({ pk: 'update', sk: 'nested', map: { a: { b: 1 } }, l: [1, 2, 3], keep: 1 })
  const answer = await store.table.update(
    'update',
    'nested',
    'SET #m.a.b = :v, l[1] = :w REMOVE l[0], keep',
    { ':v': 9, ':w': 'W' },
    { ReturnValues: 'ALL_NEW', ExpressionAttributeNames: { '#m': 'map' } },
  )
  expect(answer.Attributes).toEqual({ pk: 'update', sk: 'nested', map: { a: { b: 9 } }, l: ['W', 3] })
})

test.each<[string, Record<string, unknown>]>([
  ['n IN (:a, :b)', { ':a': 4, ':b': 5 }],
  ['begins_with(s, :p) AND NOT (n = :z)', { ':p': 'he', ':z': 1 }],
  ['n = :z OR (s <> :z AND attribute_exists(l[1]))', { ':z': 1 }],
  ['attribute_not_exists(m.absent) AND m.present = :one', { ':one': 1 }],
])('the condition %s holds', async (ConditionExpression, values) => {
  const item = { pk: 'functions', sk: '1', s: 'hello', l: ['x', 'y'], n: 5, ss: new Set(['q']), m: { present: 1 } }
  await store.table.put(item)
  await store.table.update('functions', '1', 'SET ok = :yes', { ...values, ':yes': true }, { ConditionExpression })
})

test('numbers keep 38 digits', async () => {
  const N = '12345678901234567890123456789012345678'
  const Item = { pk: { S: 'digits' }, sk: { S: '1' }, n: { N } }
  await store.table.client.send(new PutItemCommand({ TableName: store.table.name, Item }))
  const { Attributes } = await store.table.client.send(
    new PutItemCommand({ TableName: store.table.name, Item, ReturnValues: 'ALL_OLD' }),
  )
  expect(Attributes?.['n']).toEqual({ N })
})

const KILOBYTE = 1024

beforeAll(async () => {
  await store.table.put({ pk: 'L', sk: 'full', d: 'x'.repeat(400 * KILOBYTE - 20) })
})

const set = (table: TestTable, expression: string, values: Record<string, unknown>) =>
  table.update('v', '1', expression, values)

type Case = [name: string, call: (table: TestTable) => Promise<unknown>, message: RegExp]

const rejected: Case[] = [
  [
    'an item over 400 KB',
    (t) => t.put({ pk: 'L', sk: '1', d: 'x'.repeat(400 * KILOBYTE) }),
    /Item size has exceeded the maximum allowed size/,
  ],
  [
    'an update that grows an item over 400 KB',
    (t) => t.update('L', 'full', 'SET e = :e', { ':e': 'x'.repeat(100) }),
    /Item size to update has exceeded the maximum allowed size/,
  ],
  ['a sort key over 1024 bytes in UTF-8', (t) => t.put({ pk: 'L', sk: '漢'.repeat(342) }), /size limit of 1024 bytes/],
  [
    'an index sort key over 1024 bytes',
    (t) => t.put({ pk: 'L', sk: '1', g1pk: 'g', g1sk: 'x'.repeat(1025) }),
    /size limit of 1024 bytes/,
  ],
  ['an empty index key', (t) => t.put({ pk: 'v', sk: '1', g1pk: '', g1sk: 'x' }), /IndexName: byG1, IndexKey: g1pk/],
  [
    'an update of a key',
    (t) => set(t, 'SET pk = :s', { ':s': 'x' }),
    /Cannot update attribute pk. This attribute is part of the key/,
  ],
  ['a reserved word', (t) => set(t, 'SET status = :s', { ':s': 1 }), /reserved keyword; reserved keyword: status/],
  [
    'an undefined value',
    (t) => set(t, 'SET a = :s', { ':t': 1 }),
    /value used in expression is not defined; attribute value: :s/,
  ],
  ['an unused value', (t) => set(t, 'SET a = :s', { ':s': 1, ':u': 1 }), /unused in expressions: keys: \{:u\}/],
  ['overlapping paths', (t) => set(t, 'SET a = :s, a.b = :s', { ':s': 'x' }), /Two document paths overlap/],
  [
    'a query without a hash key',
    (t) => t.query('sk = :s', { ':s': 'x' }),
    /Query condition missed key schema element: pk/,
  ],
  [
    'an unknown index',
    (t) => t.query('pk = :s', { ':s': 'x' }, { IndexName: 'nope' }),
    /does not have the specified index: nope/,
  ],
  [
    'a start key of another partition',
    (t) => t.query('pk = :s', { ':s': 'x' }, { ExclusiveStartKey: { pk: 'o', sk: 'y' } }),
    /outside query boundaries/,
  ],
]

test.each(rejected)('%s is refused', async (_name, call, message) => {
  const refusal = await rejectionOf(call(store.table))
  expect(refusal).toMatchObject({ name: 'ValidationException', message: expect.stringMatching(message) })
})

test('an item just under 400 KB is taken', async () => {
  expect(await store.table.item('L', 'full')).toHaveProperty('d')
})
