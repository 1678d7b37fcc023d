import { request } from 'node:http'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test } from 'vitest'
import { clientOf, rejectionOf, TestTable, useStore } from './support/table.ts'

const store = useStore()

test('calls and capacity are counted by operation', async () => {
  const database = await startDynamoDb()
  const table = new TestTable(clientOf(database.url))
  await table.create()
  await table.put({ pk: 'metrics', sk: '1', g1pk: 'g', g1sk: '1' })
  await table.put({ pk: 'metrics', sk: '1' }, { ReturnConsumedCapacity: 'TOTAL' })
  await rejectionOf(table.put({ pk: 'metrics', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' }))
  await table.get('metrics', '1')
  await table.query('pk = :p', { ':p': 'metrics' }, { ConsistentRead: true })
  await table.transact([table.addMember('metrics', '2', 1), table.addMember('metrics', '3', 1)])
  const { operations }: any = await (await fetch(`${database.url}/_metrics`)).json()
  await database.close()
  expect(operations).toEqual({
    CreateTable: { calls: 1, failures: 0, readUnits: 0, writeUnits: 0 },
    PutItem: { calls: 3, failures: 1, readUnits: 0, writeUnits: 5 },
    GetItem: { calls: 1, failures: 0, readUnits: 0.5, writeUnits: 0 },
    Query: { calls: 1, failures: 0, readUnits: 1, writeUnits: 0 },
    TransactWriteItems: { calls: 1, failures: 0, readUnits: 0, writeUnits: 4 },
  })
})

test('the store answers on the loopback address, to nobody who calls it by another name', async () => {
  expect(new URL(store.database.url).hostname).toBe('127.0.0.1')
  const status = await new Promise((resolve, reject) => {
    const call = request(`${store.database.url}/_metrics`, { headers: { host: 'store.example' } })
    call
      .on('response', (response) => resolve(response.statusCode))
      .on('error', reject)
      .end()
  })
  expect(status).toBe(400)
})

test('a call without a signature is refused, and one by another key when a key is set', async () => {
  const headers = { 'x-amz-target': 'DynamoDB_20120810.ListTables' }
  const unsigned = await fetch(store.database.url, { method: 'POST', headers, body: '{}' })
  expect(await unsigned.json()).toHaveProperty('__type', 'com.amazon.coral.service#MissingAuthenticationTokenException')
  const guarded = await startDynamoDb({ accessKeyId: 'the-key' })
  const table = new TestTable(clientOf(guarded.url))
  expect((await rejectionOf(table.create())).name).toBe('UnrecognizedClientException')
  await guarded.close()
})
