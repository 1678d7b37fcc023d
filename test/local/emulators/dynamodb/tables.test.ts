import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  ExecuteStatementCommand,
  ListTablesCommand,
  UpdateTableCommand,
  waitUntilTableNotExists,
} from '@aws-sdk/client-dynamodb'
import { expect, test } from 'vitest'
import { TestTable, eventually, refusalOf, tableDefinition, useStore } from './support/table.ts'

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
  const refusal = await refusalOf(store.table.create())
  expect(refusal.name).toBe('ResourceInUseException')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 5 }, () => store.table.client.send(new CreateTableCommand(simple('raced-for')))),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
})

test('an attribute definition that nothing uses is refused', async () => {
  const { AttributeDefinitions, ...rest } = simple('unused-attribute')
  const definitions = [...AttributeDefinitions, { AttributeName: 'unused', AttributeType: 'S' as const }]
  const command = new CreateTableCommand({ ...rest, AttributeDefinitions: definitions })
  expect((await refusalOf(store.table.client.send(command))).name).toBe('ValidationException')
})

test('an unknown table is not found by any kind of call', async () => {
  const table = new TestTable(store.table.client, 'nowhere')
  for (const call of [
    table.put({ pk: 'a', sk: 'b' }),
    table.get('a', 'b'),
    table.query('pk = :p', { ':p': 'a' }),
    describe(table.name),
  ]) {
    expect((await refusalOf(call)).name).toBe('ResourceNotFoundException')
  }
})

test('a protected table cannot be deleted until the protection is taken away', async () => {
  const { client } = store.table
  await client.send(new CreateTableCommand({ ...simple('protected'), DeletionProtectionEnabled: true }))
  expect((await refusalOf(dropTable('protected'))).name).toBe('ValidationException')
  await client.send(new UpdateTableCommand({ TableName: 'protected', DeletionProtectionEnabled: false }))
  await dropTable('protected')
})

test('a deleted table is gone, and one created anew under its name is empty', async () => {
  const table = new TestTable(store.table.client)
  await table.create()
  await table.put({ pk: 'a', sk: 'b', g1pk: 'g', g1sk: '1' })
  await dropTable(table.name)
  expect((await refusalOf(table.get('a', 'b'))).name).toBe('ResourceNotFoundException')
  await table.create()
  expect(await table.item('a', 'b')).toBeUndefined()
  expect((await table.query('g1pk = :g', { ':g': 'g' }, { IndexName: 'byG1' })).Count).toBe(0)
})

test('names are listed in order, page by page', async () => {
  const { client } = store.table
  for (const name of ['list-b', 'list-a', 'list-c']) await client.send(new CreateTableCommand(simple(name)))
  const first = await client.send(new ListTablesCommand({ ExclusiveStartTableName: 'list-', Limit: 2 }))
  expect(first).toMatchObject({ TableNames: ['list-a', 'list-b'], LastEvaluatedTableName: 'list-b' })
  const second = await client.send(new ListTablesCommand({ ExclusiveStartTableName: 'list-b', Limit: 1 }))
  expect(second.TableNames).toEqual(['list-c'])
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

test('an index can be deleted and made again', async () => {
  const table = new TestTable(store.table.client)
  await table.create()
  await table.put({ pk: 'a', sk: 'b', g2pk: 'g' })
  const { GlobalSecondaryIndexes } = tableDefinition(table.name)
  const update = (change: object) =>
    table.client.send(new UpdateTableCommand({ TableName: table.name, GlobalSecondaryIndexUpdates: [change] }))
  await update({ Delete: { IndexName: 'byG2' } })
  await eventually(async () => expect(await indexState(table, 'byG2')).toBeUndefined())
  const refusal = await refusalOf(table.query('g2pk = :g', { ':g': 'g' }, { IndexName: 'byG2' }))
  expect(refusal.message).toBe('The table does not have the specified index: byG2')
  await update({ Create: GlobalSecondaryIndexes![1]! })
  await eventually(async () => expect(await indexState(table, 'byG2')).toBe('ACTIVE'))
  expect((await table.query('g2pk = :g', { ':g': 'g' }, { IndexName: 'byG2' })).Count).toBe(1)
})

test('what is not supported is refused and not ignored', async () => {
  const { client, name } = store.table
  const update = new UpdateTableCommand({ TableName: name, BillingMode: 'PAY_PER_REQUEST' })
  expect((await refusalOf(client.send(update))).message).toBe('UpdateTable of BillingMode is not supported here')
  const statement = new ExecuteStatementCommand({ Statement: `SELECT * FROM "${name}"` })
  expect((await refusalOf(client.send(statement))).name).toBe('UnknownOperationException')
})
