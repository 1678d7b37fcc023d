import { request } from 'node:http'
import { DescribeTimeToLiveCommand, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rounds } from '../../../support/long.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { clientOf, eventually, rejectionOf, TestTable, useStore } from './support.ts'

const store = useStore()

test.each(['put', 'update', 'delete'] as const)(
  'a failed condition of a %s returns the item on request',
  async (kind) => {
    const sk = `shown-${kind}`
    await store.table.put({ pk: 'condition', sk, v: 1 })
    const conditionInput = { ConditionExpression: 'v = :no', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }
    const values = { ExpressionAttributeValues: { ':no': 0 } }
    const calls = {
      put: () => store.table.put({ pk: 'condition', sk }, { ...conditionInput, ...values }),
      update: () => store.table.update('condition', sk, 'REMOVE w', { ':no': 0 }, conditionInput),
      delete: () => store.table.delete('condition', sk, { ...conditionInput, ...values }),
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

const fullItem = { pk: 'L', sk: 'full', d: 'x'.repeat(400 * 1024 - 20) }

test.each<[string, (table: TestTable) => Promise<unknown>, RegExp]>([
  ['an item over 400 KB', (t) => t.put({ ...fullItem, e: 'x'.repeat(20) }), /Item size has exceeded the maximum/],
  [
    'an update that grows an item over 400 KB',
    (t) => t.put(fullItem).then(() => t.update('L', 'full', 'SET e = :e', { ':e': 'x'.repeat(100) })),
    /Item size to update has exceeded the maximum allowed size/,
  ],
  ['a sort key over 1024 bytes in UTF-8', (t) => t.put({ pk: 'L', sk: '漢'.repeat(342) }), /size limit of 1024 bytes/],
  [
    'an index sort key over 1024 bytes',
    (t) => t.put({ pk: 'L', sk: '1', g1pk: 'g', g1sk: 'x'.repeat(1025) }),
    /size limit of 1024 bytes/,
  ],
  ['an empty index key', (t) => t.put({ pk: 'v', sk: '1', g1pk: '', g1sk: 'x' }), /IndexName: byG1, IndexKey: g1pk/],
])('rejects %s', async (_name, call, message) => {
  const error = await rejectionOf(call(store.table))
  expect(error).toMatchObject({ name: 'ValidationException', message: expect.stringMatching(message) })
})

const itemCount = 40

const itemAt = (k: number) => ({
  pk: 'Q',
  sk: (k < 30 ? 'A#' : 'B#') + String(k).padStart(4, '0'),
  k,
  ...(k < 10 && { g1pk: 'G', g1sk: String(k).padStart(3, '0') }),
})

async function putAll(items: Record<string, unknown>[]): Promise<void> {
  for (let start = 0; start < items.length; start += 25) {
    const requests = items.slice(start, start + 25).map((Item) => ({ PutRequest: { Item } }))
    await store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))
  }
}

beforeAll(() => putAll(numbersUpTo(itemCount).map(itemAt)))

const numbersOf = (items: Record<string, unknown>[] | undefined) => items?.map(({ k }) => k)
const numbersUpTo = (count: number) => Array.from({ length: count }, (_, k) => k)

test.each([true, false])('pages contain the whole partition in order, forward: %s', async (ScanIndexForward) => {
  const items = await store.table.all('pk = :p', { ':p': 'Q' }, { Limit: 7, ScanIndexForward })
  expect(numbersOf(items)).toEqual(ScanIndexForward ? numbersUpTo(itemCount) : numbersUpTo(itemCount).toReversed())
})

test('a page that ends with the last item has a LastEvaluatedKey', async () => {
  const { table } = store
  const values = { ':p': 'Q', ':s': 'B#' }
  const page = await table.query('pk = :p AND begins_with(sk, :s)', values, { Limit: 10 })
  expect(page.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'B#0039' })
  const pageInput = { Limit: 10, ExclusiveStartKey: page.LastEvaluatedKey }
  const next = await table.query('pk = :p AND begins_with(sk, :s)', values, pageInput)
  expect([next.Count, next.LastEvaluatedKey]).toEqual([0, undefined])
})

test('the LastEvaluatedKey of an index has the keys of index and table', async () => {
  const firstPage = await store.table.query('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(firstPage.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'A#0003', g1pk: 'G', g1sk: '003' })
  const items = await store.table.all('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(numbersOf(items)).toEqual(numbersUpTo(10))
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
  expect(numbersOf(await table.all('pk = :p', { ':p': 'big' }))).toEqual(numbersUpTo(30))
})

const rowCount = rounds(2000, 20_000)

/** All rows have the same `g2pk`, so only the item's own key distinguishes them in that index. */
const rowAt = (id: number) => ({ pk: `p${id % 7}`, sk: `i${id}`, g2pk: 'same', g1pk: 'same', g1sk: `Online#i${id}` })

beforeAll(() => putAll(numbersUpTo(rowCount).map(rowAt)))

test.each([
  ['equal', 'byG2', 'g2pk'],
  ['unique', 'byG1', 'g1pk'],
])('pages of an index with %s keys neither repeat nor omit an item', async (_kind, IndexName, hash) => {
  for (const ScanIndexForward of [true, false]) {
    const query = { IndexName, Limit: 997, ScanIndexForward }
    const rows = await store.table.all(`${hash} = :g`, { ':g': 'same' }, query)
    expect([rows.length, new Set(rows.map(({ sk }) => sk)).size]).toEqual([rowCount, rowCount])
  }
})

const TOTAL = { ReturnConsumedCapacity: 'TOTAL' as const }
const INDEXES = { ReturnConsumedCapacity: 'INDEXES' as const }
const kilobytes = (count: number) => 'x'.repeat(Math.round(count * 1024))

beforeAll(async () => {
  await store.table.put({ pk: 'read', sk: '1', d: kilobytes(0.9) })
  await store.table.put({ pk: 'read', sk: '5', d: kilobytes(5) })
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

test('a write uses a unit per kilobyte of the larger item, two to move an index row, and one to remove it', async () => {
  const { table } = store
  const largePut = await table.put({ pk: 'write', sk: '1', d: kilobytes(1.5) }, TOTAL)
  expect(largePut.ConsumedCapacity?.CapacityUnits).toBe(2)
  const smallPut = await table.put({ pk: 'write', sk: '1' }, TOTAL)
  expect(smallPut.ConsumedCapacity?.CapacityUnits).toBe(2)
  expect((await table.delete('write', '1', TOTAL)).ConsumedCapacity?.CapacityUnits).toBe(1)
  await table.put({ pk: 'write', sk: '3', g1pk: 'from', g1sk: '1' })
  const movedUpdate = await table.update('write', '3', 'SET g1pk = :to', { ':to': 'to' }, INDEXES)
  const GlobalSecondaryIndexes = { byG1: { CapacityUnits: 2 } }
  expect(movedUpdate.ConsumedCapacity).toMatchObject({ CapacityUnits: 3, GlobalSecondaryIndexes })
  const removalUpdate = await table.update('write', '3', 'REMOVE g1pk', undefined, INDEXES)
  expect(removalUpdate.ConsumedCapacity?.GlobalSecondaryIndexes).toEqual({ byG1: { CapacityUnits: 1 } })
})

test('a transaction uses twice the units of the item, and the units of its index rows once', async () => {
  const member = store.table.putMember({ pk: 'write', sk: '4', g1pk: 'g', g1sk: '1', d: kilobytes(1.5) })
  const { ConsumedCapacity } = await store.table.transact([member], INDEXES)
  const units = { Table: { CapacityUnits: 4 }, GlobalSecondaryIndexes: { byG1: { CapacityUnits: 2 } } }
  expect(ConsumedCapacity).toMatchObject([{ CapacityUnits: 6, ...units }])
})

test('rejects calls of an unknown table, and a second table of the same name', async () => {
  const missingTable = new TestTable(store.table.client, 'nowhere')
  const calls = [
    missingTable.put({ pk: 'a', sk: 'b' }),
    missingTable.get('a', 'b'),
    missingTable.query('pk = :p', { ':p': 'a' }),
  ]
  for (const call of calls) expect((await rejectionOf(call)).name).toBe('ResourceNotFoundException')
  expect((await rejectionOf(store.table.create())).name).toBe('ResourceInUseException')
})

test('counts calls and capacity by operation', async () => {
  const countingStore = await startDynamoDb()
  const countedTable = new TestTable(clientOf(countingStore.url))
  await countedTable.create()
  await countedTable.put({ pk: 'metrics', sk: '1', g1pk: 'g', g1sk: '1' })
  await countedTable.put({ pk: 'metrics', sk: '1' }, { ReturnConsumedCapacity: 'TOTAL' })
  await rejectionOf(countedTable.put({ pk: 'metrics', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' }))
  await countedTable.get('metrics', '1')
  await countedTable.query('pk = :p', { ':p': 'metrics' }, { ConsistentRead: true })
  await countedTable.transact([countedTable.addMember('metrics', '2', 1), countedTable.addMember('metrics', '3', 1)])
  const { operations }: any = await (await fetch(`${countingStore.url}/_metrics`)).json()
  await countingStore.close()
  expect(operations).toEqual({
    CreateTable: { calls: 1, failures: 0, readUnits: 0, writeUnits: 0 },
    PutItem: { calls: 3, failures: 1, readUnits: 0, writeUnits: 5 },
    GetItem: { calls: 1, failures: 0, readUnits: 0.5, writeUnits: 0 },
    Query: { calls: 1, failures: 0, readUnits: 1, writeUnits: 0 },
    TransactWriteItems: { calls: 1, failures: 0, readUnits: 0, writeUnits: 4 },
  })
})

test('listens on loopback, and rejects other host names', async () => {
  expect(new URL(store.database.url).hostname).toBe('127.0.0.1')
  const status = await new Promise((resolve, reject) => {
    request(`${store.database.url}/_metrics`, { headers: { host: 'store.example' } })
      .on('response', (response) => resolve(response.statusCode))
      .on('error', reject)
      .end()
  })
  expect(status).toBe(400)
})

test('rejects unsigned calls', async () => {
  const headers = { 'x-amz-target': 'DynamoDB_20120810.ListTables' }
  const unsignedResponse = await fetch(store.database.url, { method: 'POST', headers, body: '{}' })
  expect(await unsignedResponse.json()).toHaveProperty(
    '__type',
    'com.amazon.coral.service#MissingAuthenticationTokenException',
  )
})

const yearSeconds = 365 * 24 * 60 * 60
const now = () => Math.floor(Date.now() / 1000)
const folder = await temporaryFolder()
const dataDir = folder.path
let database = await startDynamoDb({ dataDir })
let table = new TestTable(clientOf(database.url))
await table.create()
await table.put({ pk: 'before', sk: 'past', ttl: now() - 60, g2pk: 'before' })
await table.put({ pk: 'before', sk: 'future', ttl: now() + yearSeconds, g2pk: 'before' })
afterAll(async () => {
  await database.close()
  await folder[Symbol.asyncDispose]()
})

const readExpiry = async () =>
  (await table.client.send(new DescribeTimeToLiveCommand({ TableName: table.name }))).TimeToLiveDescription
const untilExpired = (pk: string, sk: string) =>
  eventually(async () => expect(await table.item(pk, sk)).toBeUndefined())

test('expiry is disabled until an attribute is set', async () => {
  expect(await readExpiry()).toEqual({ TimeToLiveStatus: 'DISABLED' })
  const TimeToLiveSpecification = { AttributeName: 'ttl', Enabled: true }
  await table.client.send(new UpdateTimeToLiveCommand({ TableName: table.name, TimeToLiveSpecification }))
  await eventually(async () =>
    expect(await readExpiry()).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' }),
  )
})

test('existing items expire too, and leave their indexes', async () => {
  await untilExpired('before', 'past')
  const rows = await table.all('g2pk = :g', { ':g': 'before' }, { IndexName: 'byG2' })
  expect(rows.map(({ sk }) => sk)).toEqual(['future'])
})

test('only items with a recent past time in seconds expire', async () => {
  const ttls = {
    future: now() + 60,
    ancient: now() - 6 * yearSeconds,
    text: String(now() - 60),
    milliseconds: Date.now(),
    prolonged: now() + 3,
  }
  for (const [sk, ttl] of Object.entries(ttls)) await table.put({ pk: 'some', sk, ttl })
  await table.put({ pk: 'some', sk: 'none' })
  const names = { ExpressionAttributeNames: { '#t': 'ttl' } }
  await table.update('some', 'prolonged', 'SET #t = :t', { ':t': now() + 60 }, names)
  await table.put({ pk: 'some', sk: 'past', ttl: now() + 3 })
  await untilExpired('some', 'past')
  const remainingKeys = (await table.all('pk = :p', { ':p': 'some' })).map(({ sk }) => sk)
  expect(remainingKeys).toEqual([...Object.keys(ttls), 'none'].toSorted())
})

test('all due items expire, also more than one sweep deletes', async () => {
  const ids = Array.from({ length: 450 }, (_, id) => id)
  await Promise.all(ids.map((id) => table.put({ pk: 'many', sk: String(id), ttl: now() - 1 })))
  await eventually(async () => expect(await table.all('pk = :p', { ':p': 'many' })).toEqual([]))
})

test('an item expires after a restart', async () => {
  await table.put({ pk: 'restart', sk: '1', ttl: now() + 1 })
  await database.close()
  database = await startDynamoDb({ dataDir })
  table = new TestTable(clientOf(database.url), table.name)
  await untilExpired('restart', '1')
})
