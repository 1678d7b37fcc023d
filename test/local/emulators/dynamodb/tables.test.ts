import { request } from 'node:http'
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  ExecuteStatementCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableNotExists,
} from '@aws-sdk/client-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, expect, test } from 'vitest'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { clientOf, eventually, rejectionOf, TestTable, useStore } from './support.ts'

const store = useStore()

const describe = async (name: string) =>
  (await store.table.client.send(new DescribeTableCommand({ TableName: name }))).Table

test('a new table is active, with its indexes and their projections', async () => {
  const description = await describe(store.table.name)
  expect(description).toMatchObject({ TableStatus: 'ACTIVE', BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' } })
  const indexes = description?.GlobalSecondaryIndexes ?? []
  expect(indexes.map(({ IndexStatus }) => IndexStatus)).toEqual(['ACTIVE', 'ACTIVE', 'ACTIVE'])
  expect(indexes[1]?.Projection?.NonKeyAttributes).toEqual(['a', 'b'])
})

test('rejects a second table of the same name, also when created concurrently', async () => {
  expect((await rejectionOf(store.table.create())).name).toBe('ResourceInUseException')
  const create = new CreateTableCommand({
    TableName: 'concurrent',
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
  })
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => store.table.client.send(create)))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('rejects calls of an unknown table', async () => {
  const missing = new TestTable(store.table.client, 'nowhere')
  const calls = [missing.put({ pk: 'a', sk: 'b' }), missing.get('a', 'b'), missing.query('pk = :p', { ':p': 'a' })]
  for (const call of [...calls, describe(missing.name)]) {
    expect((await rejectionOf(call)).name).toBe('ResourceNotFoundException')
  }
})

test('a deleted table can be created again, and is then empty', async () => {
  const created = new TestTable(store.table.client)
  await created.create()
  await created.put({ pk: 'a', sk: 'b', g1pk: 'g', g1sk: '1' })
  await created.client.send(new DeleteTableCommand({ TableName: created.name }))
  const wait = { client: created.client, maxWaitTime: 10, minDelay: 0.01, maxDelay: 0.05 }
  await waitUntilTableNotExists(wait, { TableName: created.name })
  expect((await rejectionOf(created.get('a', 'b'))).name).toBe('ResourceNotFoundException')
  await created.create()
  expect(await created.item('a', 'b')).toBeUndefined()
  expect((await created.query('g1pk = :g', { ':g': 'g' }, { IndexName: 'byG1' })).Count).toBe(0)
})

test('rejects an unsupported operation', async () => {
  const statement = new ExecuteStatementCommand({ Statement: `SELECT * FROM "${store.table.name}"` })
  expect((await rejectionOf(store.table.client.send(statement))).name).toBe('UnknownOperationException')
})

test('counts calls and capacity by operation', async () => {
  const counting = await startDynamoDb()
  const counted = new TestTable(clientOf(counting.url))
  await counted.create()
  await counted.put({ pk: 'metrics', sk: '1', g1pk: 'g', g1sk: '1' })
  await counted.put({ pk: 'metrics', sk: '1' }, { ReturnConsumedCapacity: 'TOTAL' })
  await rejectionOf(counted.put({ pk: 'metrics', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' }))
  await counted.get('metrics', '1')
  await counted.query('pk = :p', { ':p': 'metrics' }, { ConsistentRead: true })
  await counted.transact([counted.addMember('metrics', '2', 1), counted.addMember('metrics', '3', 1)])
  const { operations }: any = await (await fetch(`${counting.url}/_metrics`)).json()
  await counting.close()
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

test('rejects unsigned calls, and calls signed with another access key', async () => {
  const headers = { 'x-amz-target': 'DynamoDB_20120810.ListTables' }
  const unsigned = await fetch(store.database.url, { method: 'POST', headers, body: '{}' })
  expect(await unsigned.json()).toHaveProperty('__type', 'com.amazon.coral.service#MissingAuthenticationTokenException')
  const guarded = await startDynamoDb({ accessKeyId: 'the-key' })
  expect((await rejectionOf(new TestTable(clientOf(guarded.url)).create())).name).toBe('UnrecognizedClientException')
  await guarded.close()
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

const setExpiry = (AttributeName: string, Enabled: boolean) =>
  table.client.send(
    new UpdateTimeToLiveCommand({ TableName: table.name, TimeToLiveSpecification: { AttributeName, Enabled } }),
  )
const expiry = async () =>
  (await table.client.send(new DescribeTimeToLiveCommand({ TableName: table.name }))).TimeToLiveDescription
const untilExpired = (pk: string, sk: string) =>
  eventually(async () => expect(await table.item(pk, sk)).toBeUndefined())

test('expiry is disabled until an attribute is set', async () => {
  expect(await expiry()).toEqual({ TimeToLiveStatus: 'DISABLED' })
  expect((await rejectionOf(setExpiry('ttl', false))).message).toBe('TimeToLive is already disabled')
  await setExpiry('ttl', true)
  await eventually(async () => expect(await expiry()).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' }))
  expect((await rejectionOf(setExpiry('ttl', true))).message).toBe('TimeToLive is already enabled')
})

test('existing items expire too, and leave their indexes', async () => {
  await untilExpired('before', 'past')
  const rows = await table.all('g2pk = :g', { ':g': 'before' }, { IndexName: 'byG2' })
  expect(rows.map(({ sk }) => sk)).toEqual(['future'])
})

test('only items with a recent past time in seconds expire', async () => {
  const lasting = {
    future: now() + 60,
    ancient: now() - 6 * yearSeconds,
    text: String(now() - 60),
    milliseconds: Date.now(),
    prolonged: now() + 3,
  }
  for (const [sk, ttl] of Object.entries(lasting)) await table.put({ pk: 'some', sk, ttl })
  await table.put({ pk: 'some', sk: 'none' })
  const names = { ExpressionAttributeNames: { '#t': 'ttl' } }
  await table.update('some', 'prolonged', 'SET #t = :t', { ':t': now() + 60 }, names)
  await table.put({ pk: 'some', sk: 'past', ttl: now() + 3 })
  await untilExpired('some', 'past')
  const remaining = (await table.all('pk = :p', { ':p': 'some' })).map(({ sk }) => sk)
  expect(remaining).toEqual([...Object.keys(lasting), 'none'].toSorted())
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

test('nothing expires after expiry is disabled', async () => {
  await setExpiry('ttl', false)
  expect(await expiry()).toEqual({ TimeToLiveStatus: 'DISABLED' })
  await table.put({ pk: 'off', sk: '1', ttl: now() - 60 })
  await setExpiry('other', true)
  await table.put({ pk: 'off', sk: '2', other: now() - 60 })
  await untilExpired('off', '2')
  expect(await table.item('off', '1')).toBeDefined()
})
