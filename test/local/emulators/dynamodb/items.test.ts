import { PutItemCommand } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { rounds } from '../../../support/long.ts'
import { rejectionOf, type TestTable, useStore } from './support.ts'

const store = useStore()

test.each(['put', 'update', 'delete'] as const)(
  'a failed condition of a %s returns the item on request',
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
    const error = await rejectionOf(calls[kind]())
    expect(error.Item).toEqual({ pk: { S: 'condition' }, sk: { S: sk }, v: { N: '1' } })
  },
)

test('an update uses the old values and can return the new item', async () => {
  await store.table.put({ pk: 'update', sk: '1', n: 5, list: [1], keep: 'x' })
  const output = await store.table.update(
    'update',
    '1',
    'SET n = n + :one, c = if_not_exists(c, :ten) + :one, #l = list_append(#l, :l), #m = :m',
    { ':one': 1, ':ten': 10, ':l': [2, 3], ':m': { a: { b: 1 } } },
    { ReturnValues: 'ALL_NEW', ExpressionAttributeNames: { '#m': 'map', '#l': 'list' } },
  )
  const expected = { pk: 'update', sk: '1', n: 6, c: 11, list: [1, 2, 3], map: { a: { b: 1 } }, keep: 'x' }
  expect(output.Attributes).toEqual(expected)
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

test('keeps 38 digits of a number', async () => {
  const N = '12345678901234567890123456789012345678'
  const Item = { pk: { S: 'digits' }, sk: { S: '1' }, n: { N } }
  await store.table.client.send(new PutItemCommand({ TableName: store.table.name, Item }))
  const { Attributes } = await store.table.client.send(
    new PutItemCommand({ TableName: store.table.name, Item, ReturnValues: 'ALL_OLD' }),
  )
  expect(Attributes?.['n']).toEqual({ N })
})

test('accepts an item just under 400 KB', async () => {
  await store.table.put({ pk: 'L', sk: 'full', d: 'x'.repeat(400 * 1024 - 20) })
  expect(await store.table.item('L', 'full')).toHaveProperty('d')
})

test.each<[string, (table: TestTable) => Promise<unknown>, RegExp]>([
  [
    'an item over 400 KB',
    (t) => t.put({ pk: 'L', sk: '1', d: 'x'.repeat(400 * 1024) }),
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
  ['an update of a key', (t) => t.update('v', '1', 'SET pk = :s', { ':s': 'x' }), /Cannot update attribute pk/],
  ['a reserved word', (t) => t.update('v', '1', 'SET status = :s', { ':s': 1 }), /reserved keyword: status/],
  ['an unknown index', (t) => t.query('pk = :s', { ':s': 'x' }, { IndexName: 'nope' }), /specified index: nope/],
])('rejects %s', async (_name, call, message) => {
  const error = await rejectionOf(call(store.table))
  expect(error).toMatchObject({ name: 'ValidationException', message: expect.stringMatching(message) })
})

const itemCount = 40

const itemAt = (k: number) => ({
  pk: 'Q',
  sk: (k < 30 ? 'A#' : 'B#') + String(k).padStart(4, '0'),
  k,
  even: k % 2 === 0,
  ...(k < 10 && { g1pk: 'G', g1sk: String(k).padStart(3, '0') }),
  ...(k % 5 === 0 && { g2pk: 'S', a: k, b: `b${k}`, c: 'not projected' }),
  ...(k < 12 && { g3pk: 'N', g3n: k }),
})

/** Writes items in batches of 25, eight at a time. */
async function putAll(items: Record<string, unknown>[]): Promise<void> {
  const remaining = [...items]
  const write = async () => {
    while (remaining.length > 0) {
      const requests = remaining.splice(0, 25).map((Item) => ({ PutRequest: { Item } }))
      await store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))
    }
  }
  await Promise.all(Array.from({ length: 8 }, write))
}

beforeAll(() => putAll(upTo(itemCount).map(itemAt)))

const numbersOf = (items: Record<string, unknown>[] | undefined) => items?.map(({ k }) => k)
const upTo = (count: number) => Array.from({ length: count }, (_, k) => k)

test.each([true, false])('pages contain the whole partition in order, forward: %s', async (ScanIndexForward) => {
  const items = await store.table.all('pk = :p', { ':p': 'Q' }, { Limit: 7, ScanIndexForward })
  expect(numbersOf(items)).toEqual(ScanIndexForward ? upTo(itemCount) : upTo(itemCount).toReversed())
})

test('a page that ends with the last item has a LastEvaluatedKey', async () => {
  const { table } = store
  const values = { ':p': 'Q', ':s': 'B#' }
  const page = await table.query('pk = :p AND begins_with(sk, :s)', values, { Limit: 10 })
  expect(page.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'B#0039' })
  const rest = { Limit: 10, ExclusiveStartKey: page.LastEvaluatedKey }
  const next = await table.query('pk = :p AND begins_with(sk, :s)', values, rest)
  expect([next.Count, next.LastEvaluatedKey]).toEqual([0, undefined])
})

test('applies the limit before the filter', async () => {
  const rest = { FilterExpression: 'even = :yes', Limit: 10 }
  const page = await store.table.query('pk = :p', { ':p': 'Q', ':yes': true }, rest)
  expect([page.Count, page.ScannedCount]).toEqual([5, 10])
})

test('the LastEvaluatedKey of an index has the keys of index and table', async () => {
  const first = await store.table.query('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(first.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'A#0003', g1pk: 'G', g1sk: '003' })
  const items = await store.table.all('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(numbersOf(items)).toEqual(upTo(10))
})

test('an index contains items that have its keys, with the projected attributes', async () => {
  const page = await store.table.query('g2pk = :g', { ':g': 'S' }, { IndexName: 'byG2' })
  expect(page.Count).toBe(8)
  expect(page.Items).toContainEqual({ pk: 'Q', sk: 'A#0005', g2pk: 'S', a: 5, b: 'b5' })
})

test('sorts numbers by value', async () => {
  const numbers = [-10, -9.5, -0.001, 0, 0.5, 3, 1e10]
  for (const n of numbers.toReversed()) await store.table.put({ pk: 'NN', sk: `n${n}`, g3pk: 'ordered', g3n: n })
  const ordered = await store.table.all('g3pk = :g', { ':g': 'ordered' }, { IndexName: 'byG3' })
  expect(ordered.map(({ g3n }) => g3n)).toEqual(numbers)
  const above = await store.table.all('g3pk = :g AND g3n > :n', { ':g': 'N', ':n': 7 }, { IndexName: 'byG3' })
  expect(above.map(({ g3n }) => g3n)).toEqual([8, 9, 10, 11])
  expect(above[0]).toEqual({ pk: 'Q', sk: 'A#0008', g3pk: 'N', g3n: 8 })
})

test('a changed key moves an item in an index, and a removed key removes it', async () => {
  const { table } = store
  const countAt = async (g1pk: string) => (await table.query('g1pk = :g', { ':g': g1pk }, { IndexName: 'byG1' })).Count
  await table.put({ pk: 'move', sk: '1', g1pk: 'from', g1sk: 'a' })
  await table.update('move', '1', 'SET g1pk = :to', { ':to': 'to' })
  expect([await countAt('from'), await countAt('to')]).toEqual([0, 1])
  await table.update('move', '1', 'REMOVE g1sk')
  expect(await countAt('to')).toBe(0)
})

test('a page ends at 1 MB', async () => {
  const { table } = store
  for (let k = 0; k < 30; k += 1)
    await table.put({ pk: 'big', sk: String(k).padStart(3, '0'), k, d: 'x'.repeat(100 * 1024) })
  const page = await table.query('pk = :p', { ':p': 'big' })
  expect(page.Count).toBe(11)
  expect(numbersOf(await table.all('pk = :p', { ':p': 'big' }))).toEqual(upTo(30))
})

const rowCount = rounds(2000, 20_000)

/** All rows have the same `g2pk`, so only the item's own key distinguishes them in that index. */
const rowAt = (id: number) => ({ pk: `p${id % 7}`, sk: `i${id}`, g2pk: 'same', g1pk: 'same', g1sk: `Online#i${id}` })

beforeAll(() => putAll(upTo(rowCount).map(rowAt)))

test.each([
  ['equal', 'byG2', 'g2pk'],
  ['unique', 'byG1', 'g1pk'],
])('an index with %s keys finds all items', async (_kind, IndexName, hash) => {
  const rows = await store.table.all(`${hash} = :g`, { ':g': 'same' }, { IndexName })
  expect(new Set(rows.map(({ sk }) => sk)).size).toBe(rowCount)
})

test('pages of equal index keys neither repeat nor omit an item', async () => {
  const query = { IndexName: 'byG2', Limit: 997 }
  for (const ScanIndexForward of [true, false]) {
    const rows = await store.table.all('g2pk = :g', { ':g': 'same' }, { ...query, ScanIndexForward })
    expect([rows.length, new Set(rows.map(({ sk }) => sk)).size]).toEqual([rowCount, rowCount])
  }
})

const TOTAL = { ReturnConsumedCapacity: 'TOTAL' as const }
const INDEXES = { ReturnConsumedCapacity: 'INDEXES' as const }
const kilobytes = (count: number) => 'x'.repeat(Math.round(count * 1024))

beforeAll(async () => {
  await store.table.put({ pk: 'read', sk: '1', d: kilobytes(0.9) })
  await store.table.put({ pk: 'read', sk: '5', d: kilobytes(5) })
  for (let k = 0; k < 40; k += 1) await store.table.put({ pk: 'small', sk: String(k) })
})

test.each([
  ['1', false, 0.5],
  ['1', true, 1],
  ['5', false, 1],
  ['5', true, 2],
  ['absent', true, 1],
])('a read of item %s, consistent: %s, uses %d units', async (sk, ConsistentRead, units) => {
  const { ConsumedCapacity } = await store.table.get('read', sk, { ConsistentRead, ...TOTAL })
  expect(ConsumedCapacity?.CapacityUnits).toBe(units)
})

test('a write uses a unit per kilobyte of the larger of old and new item', async () => {
  const { table } = store
  const large = await table.put({ pk: 'write', sk: '1', d: kilobytes(1.5) }, TOTAL)
  expect(large.ConsumedCapacity?.CapacityUnits).toBe(2)
  const small = await table.put({ pk: 'write', sk: '1' }, TOTAL)
  expect(small.ConsumedCapacity?.CapacityUnits).toBe(2)
  expect((await table.delete('write', '1', TOTAL)).ConsumedCapacity?.CapacityUnits).toBe(1)
})

test('a write uses units of every changed index', async () => {
  const { table } = store
  const item = { pk: 'write', sk: '2', g1pk: 'g', g1sk: '1', g2pk: 'g', a: 1 }
  const put = await table.put(item, INDEXES)
  expect(put.ConsumedCapacity).toMatchObject({
    CapacityUnits: 3,
    Table: { CapacityUnits: 1 },
    GlobalSecondaryIndexes: { byG1: { CapacityUnits: 1 }, byG2: { CapacityUnits: 1 } },
  })
  const unprojected = await table.update('write', '2', 'SET c = :c', { ':c': 1 }, INDEXES)
  expect(unprojected.ConsumedCapacity?.GlobalSecondaryIndexes).toEqual({ byG1: { CapacityUnits: 1 } })
})

test('moving an index row costs two units, removing it one', async () => {
  const { table } = store
  await table.put({ pk: 'write', sk: '3', g1pk: 'from', g1sk: '1' })
  const moved = await table.update('write', '3', 'SET g1pk = :to', { ':to': 'to' }, INDEXES)
  expect(moved.ConsumedCapacity).toMatchObject({
    CapacityUnits: 3,
    GlobalSecondaryIndexes: { byG1: { CapacityUnits: 2 } },
  })
  const left = await table.update('write', '3', 'REMOVE g1pk', undefined, INDEXES)
  expect(left.ConsumedCapacity?.GlobalSecondaryIndexes).toEqual({ byG1: { CapacityUnits: 1 } })
})

test('a transaction uses twice the units', async () => {
  const { table } = store
  const plain = await table.transact([table.putMember({ pk: 'transact', sk: '1', d: kilobytes(0.5) })], TOTAL)
  expect(plain.ConsumedCapacity).toMatchObject([{ TableName: table.name, CapacityUnits: 2, WriteCapacityUnits: 2 }])
  const indexed = await table.transact([table.putMember({ pk: 'transact', sk: '2', g1pk: 'q', g1sk: 'q' })], INDEXES)
  expect(indexed.ConsumedCapacity).toMatchObject([
    { CapacityUnits: 4, Table: { CapacityUnits: 2 }, GlobalSecondaryIndexes: { byG1: { CapacityUnits: 2 } } },
  ])
})
