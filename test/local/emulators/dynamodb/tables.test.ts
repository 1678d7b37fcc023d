import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  ExecuteStatementCommand,
  UpdateTableCommand,
  waitUntilTableNotExists,
  DescribeTimeToLiveCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test, afterAll } from 'vitest'
import { useFolder } from './support/folder.ts'
import { TestTable, eventually, rejectionOf, useStore, clientOf } from './support/table.ts'

// Streams and PartiQL are left out on purpose: the platform uses neither.
const store = useStore()

const simple = (TableName: string) => ({
  TableName,
  BillingMode: 'PAY_PER_REQUEST' as const,
  AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' as const }],
  KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' as const }],
})

async function describe(name: string) {
  const { Table } = await store.table.client.send(new DescribeTableCommand({ TableName: name }))
  return Table!
}

async function dropTable(name: string) {
  await store.table.client.send(new DeleteTableCommand({ TableName: name }))
  await waitUntilTableNotExists(
    { client: store.table.client, maxWaitTime: 10, minDelay: 0.01, maxDelay: 0.05 },
    { TableName: name },
  )
}

async function indexState(table: TestTable, name: string) {
  return (await describe(table.name)).GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === name)?.IndexStatus
}

test('a created table serves at once and is described with its indexes and their projections', async () => {
  const described = await describe(store.table.name)
  expect(described).toMatchObject({ TableStatus: 'ACTIVE', BillingModeSummary: { BillingMode: 'PAY_PER_REQUEST' } })
  expect(described.GlobalSecondaryIndexes?.map(({ IndexStatus }) => IndexStatus)).toEqual([
    'ACTIVE',
    'ACTIVE',
    'ACTIVE',
  ])
  expect(described.GlobalSecondaryIndexes?.[1]?.Projection?.NonKeyAttributes).toEqual(['a', 'b'])
})

test('a name is taken once', async () => {
  const refusal = await rejectionOf(store.table.create())
  expect(refusal.name).toBe('ResourceInUseException')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 5 }, () => store.table.client.send(new CreateTableCommand(simple('raced-for')))),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('an unknown table is not found by any kind of call', async () => {
  const table = new TestTable(store.table.client, 'nowhere')
  for (const call of [
    table.put({ pk: 'a', sk: 'b' }),
    table.get('a', 'b'),
    table.query('pk = :p', { ':p': 'a' }),
    describe(table.name),
  ]) {
    expect((await rejectionOf(call)).name).toBe('ResourceNotFoundException')
  }
})

test('a deleted table is gone, and one created anew under its name is empty', async () => {
  const table = new TestTable(store.table.client)
  await table.create()
  await table.put({ pk: 'a', sk: 'b', g1pk: 'g', g1sk: '1' })
  await dropTable(table.name)
  expect((await rejectionOf(table.get('a', 'b'))).name).toBe('ResourceNotFoundException')
  await table.create()
  expect(await table.item('a', 'b')).toBeUndefined()
  expect((await table.query('g1pk = :g', { ':g': 'g' }, { IndexName: 'byG1' })).Count).toBe(0)
})

test('an index added later is filled with the items that were there, but for those without a fitting key', async () => {
  const table = new TestTable(store.table.client)
  await table.create()
  for (let number = 0; number < 600; number += 1) await table.put({ pk: 'late', sk: String(number), g4pk: 'all' })
  await table.put({ pk: 'late', sk: 'misfit', g4pk: 4 })
  await table.client.send(
    new UpdateTableCommand({
      TableName: table.name,
      AttributeDefinitions: [{ AttributeName: 'g4pk', AttributeType: 'S' }],
      GlobalSecondaryIndexUpdates: [
        {
          Create: {
            IndexName: 'byG4',
            KeySchema: [{ AttributeName: 'g4pk', KeyType: 'HASH' }],
            Projection: { ProjectionType: 'KEYS_ONLY' },
          },
        },
      ],
    }),
  )
  await table.put({ pk: 'late', sk: 'new', g4pk: 'all' })
  await table.delete('late', '0')
  await eventually(async () => expect(await indexState(table, 'byG4')).toBe('ACTIVE'))
  const found = await table.all('g4pk = :g', { ':g': 'all' }, { IndexName: 'byG4' })
  expect(found).toHaveLength(600)
  expect(found).toContainEqual({ pk: 'late', sk: 'new', g4pk: 'all' })
})

test('what is not supported is refused and not ignored', async () => {
  const { client, name } = store.table
  const update = new UpdateTableCommand({ TableName: name, BillingMode: 'PAY_PER_REQUEST' })
  expect((await rejectionOf(client.send(update))).message).toBe('UpdateTable of BillingMode is not supported here')
  const statement = new ExecuteStatementCommand({ Statement: `SELECT * FROM "${name}"` })
  expect((await rejectionOf(client.send(statement))).name).toBe('UnknownOperationException')
})

const YEAR_SECONDS = 365 * 24 * 60 * 60
const now = () => Math.floor(Date.now() / 1000)
const dataDir = useFolder()
let database = await startDynamoDb({ dataDir })
let table = new TestTable(clientOf(database.url))

await table.create()

await table.put({ pk: 'before', sk: 'past', ttl: now() - 60, g2pk: 'before' })

await table.put({ pk: 'before', sk: 'future', ttl: now() + YEAR_SECONDS, g2pk: 'before' })

afterAll(() => database.close())

const setExpiry = (AttributeName: string, Enabled: boolean) =>
  table.client.send(
    new UpdateTimeToLiveCommand({ TableName: table.name, TimeToLiveSpecification: { AttributeName, Enabled } }),
  )

const expiry = async () =>
  (await table.client.send(new DescribeTimeToLiveCommand({ TableName: table.name }))).TimeToLiveDescription

const untilGone = (pk: string, sk: string) => eventually(async () => expect(await table.item(pk, sk)).toBeUndefined())

test('expiry is off until an attribute is named', async () => {
  expect(await expiry()).toEqual({ TimeToLiveStatus: 'DISABLED' })
  expect((await rejectionOf(setExpiry('ttl', false))).message).toBe('TimeToLive is already disabled')
  await setExpiry('ttl', true)
  await eventually(async () => expect(await expiry()).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' }))
  expect((await rejectionOf(setExpiry('ttl', true))).message).toBe('TimeToLive is already enabled')
})

test('items that were there before expire too, and leave their indexes', async () => {
  await untilGone('before', 'past')
  const rows = await table.all('g2pk = :g', { ':g': 'before' }, { IndexName: 'byG2' })
  expect(rows.map(({ sk }) => sk)).toEqual(['future'])
})

test('only an item whose time has come expires, and a time changed in time counts', async () => {
  const kept = {
    future: now() + 60,
    ancient: now() - 6 * YEAR_SECONDS,
    text: String(now() - 60),
    milliseconds: Date.now(),
    prolonged: now() + 3,
  }
  for (const [sk, ttl] of Object.entries(kept)) await table.put({ pk: 'some', sk, ttl })
  await table.put({ pk: 'some', sk: 'none' })
  await table.update(
    'some',
    'prolonged',
    'SET #t = :t',
    { ':t': now() + 60 },
    { ExpressionAttributeNames: { '#t': 'ttl' } },
  )
  await table.put({ pk: 'some', sk: 'past', ttl: now() + 3 })
  await untilGone('some', 'past')
  const left = (await table.all('pk = :p', { ':p': 'some' })).map(({ sk }) => sk)
  expect(left).toEqual([...Object.keys(kept), 'none'].toSorted())
})

test('more items than one sweep takes at once all expire', async () => {
  const ids = Array.from({ length: 450 }, (_, id) => id)
  await Promise.all(ids.map((id) => table.put({ pk: 'many', sk: String(id), ttl: now() - 1 })))
  await eventually(async () => expect(await table.all('pk = :p', { ':p': 'many' })).toEqual([]))
})

test('an item expires after a restart', async () => {
  await table.put({ pk: 'restart', sk: '1', ttl: now() + 1 })
  await database.close()
  database = await startDynamoDb({ dataDir })
  table = new TestTable(clientOf(database.url), table.name)
  await untilGone('restart', '1')
})

test('nothing expires once expiry is off again', async () => {
  await setExpiry('ttl', false)
  expect(await expiry()).toEqual({ TimeToLiveStatus: 'DISABLED' })
  await table.put({ pk: 'off', sk: '1', ttl: now() - 60 })
  await setExpiry('other', true)
  await table.put({ pk: 'off', sk: '2', other: now() - 60 })
  await untilGone('off', '2')
  expect(await table.item('off', '1')).toBeDefined()
})
