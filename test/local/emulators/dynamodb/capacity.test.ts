import { BatchGetCommand, BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { useStore } from './support/table.ts'

const store = useStore()
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
])('a read of item %s, consistent: %s, takes %d units', async (sk, ConsistentRead, units) => {
  const { ConsumedCapacity } = await store.table.get('read', sk, { ConsistentRead, ...TOTAL })
  expect(ConsumedCapacity?.CapacityUnits).toBe(units)
})

test('a write takes a unit for each kilobyte of the larger of old and new', async () => {
  const { table } = store
  const large = await table.put({ pk: 'write', sk: '1', d: kilobytes(1.5) }, TOTAL)
  expect(large.ConsumedCapacity?.CapacityUnits).toBe(2)
  const small = await table.put({ pk: 'write', sk: '1' }, TOTAL)
  expect(small.ConsumedCapacity?.CapacityUnits).toBe(2)
  expect((await table.delete('write', '1', TOTAL)).ConsumedCapacity?.CapacityUnits).toBe(1)
})

test('a write pays for every index it touches', async () => {
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

test('a row that moves in an index pays twice, and one that leaves once', async () => {
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

test('a transaction pays twice for table and indexes', async () => {
  const { table } = store
  const plain = await table.transact([table.putMember({ pk: 'transact', sk: '1', d: kilobytes(0.5) })], TOTAL)
  expect(plain.ConsumedCapacity).toMatchObject([{ TableName: table.name, CapacityUnits: 2, WriteCapacityUnits: 2 }])
  const indexed = await table.transact([table.putMember({ pk: 'transact', sk: '2', g1pk: 'q', g1sk: 'q' })], INDEXES)
  expect(indexed.ConsumedCapacity).toMatchObject([
    { CapacityUnits: 4, Table: { CapacityUnits: 2 }, GlobalSecondaryIndexes: { byG1: { CapacityUnits: 2 } } },
  ])
})

test.each([
  [false, 0.5],
  [true, 1],
])('a query pays for the sum of what it read, consistent: %s', async (ConsistentRead, units) => {
  const page = await store.table.query('pk = :p', { ':p': 'small' }, { ConsistentRead, ...TOTAL })
  expect(page.ConsumedCapacity?.CapacityUnits).toBe(units)
})

test('a query of an index pays at the index', async () => {
  const page = await store.table.query('g1pk = :g', { ':g': 'g' }, { IndexName: 'byG1', ...INDEXES })
  expect(page.ConsumedCapacity).toMatchObject({
    CapacityUnits: 0.5,
    Table: { CapacityUnits: 0 },
    GlobalSecondaryIndexes: { byG1: { CapacityUnits: 0.5 } },
  })
})

test('batches pay for each entry', async () => {
  const { documents, name } = store.table
  const Keys = ['1', '5'].map((sk) => ({ pk: 'read', sk }))
  const read = await documents.send(new BatchGetCommand({ RequestItems: { [name]: { Keys } }, ...TOTAL }))
  expect(read.ConsumedCapacity).toMatchObject([{ TableName: name, CapacityUnits: 1.5 }])
  const requests = ['1', '2'].map((sk) => ({ PutRequest: { Item: { pk: 'batch', sk, g2pk: 'b' } } }))
  const written = await documents.send(new BatchWriteCommand({ RequestItems: { [name]: requests }, ...TOTAL }))
  expect(written.ConsumedCapacity).toMatchObject([{ TableName: name, CapacityUnits: 4 }])
})
