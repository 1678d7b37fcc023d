import { request } from 'node:http'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test } from 'vitest'
import { clientOf, refusalOf, TestTable, useStore } from './support/table.ts'

const store = useStore()

async function control(method: string, path: string, body?: object, type = 'application/json') {
  const init = { method, headers: { 'content-type': type }, ...(body && { body: JSON.stringify(body) }) }
  const response = await fetch(store.database.url + path, init)
  const answer: any = await response.json()
  return { status: response.status, body: answer }
}

test('fault switches are read, set and reset over the port', async () => {
  const set = await control('POST', '/_faults', { throttleRate: 1, seed: 3 })
  expect(set.body).toMatchObject({ throttleRate: 1, seed: 3, hangRate: 0 })
  expect((await control('GET', '/_faults')).body).toEqual(set.body)
  expect((await refusalOf(store.table.get('a', 'b'))).name).toBe('ProvisionedThroughputExceededException')
  expect((await control('DELETE', '/_faults')).body).toMatchObject({ throttleRate: 0 })
  await store.table.get('a', 'b')
})

test.each([
  ['an unknown setting', 'POST', '/_faults', { nonsense: 1 }, 'application/json'],
  ['a body that a web page could send unasked', 'POST', '/_faults', {}, 'text/plain'],
  ['an unknown path', 'POST', '/_nothing', {}, 'application/json'],
])('%s is refused', async (_name, method, path, body, type) => {
  expect((await control(method, path, body, type)).status).toBe(400)
})

test('calls and capacity are counted, whatever the client asks for', async () => {
  const { table } = store
  await control('POST', '/_metrics/reset', {})
  await table.put({ pk: 'metrics', sk: '1', g1pk: 'g', g1sk: '1' })
  await table.put({ pk: 'metrics', sk: '1' }, { ReturnConsumedCapacity: 'TOTAL' })
  await refusalOf(table.put({ pk: 'metrics', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' }))
  await table.get('metrics', '1')
  await table.query('pk = :p', { ':p': 'metrics' }, { ConsistentRead: true })
  await table.transact([table.addMember('metrics', '2', 1), table.addMember('metrics', '3', 1)])
  const { operations } = (await control('GET', '/_metrics')).body
  expect(operations).toEqual({
    PutItem: { calls: 3, failures: 1, readUnits: 0, writeUnits: 5 },
    GetItem: { calls: 1, failures: 0, readUnits: 0.5, writeUnits: 0 },
    Query: { calls: 1, failures: 0, readUnits: 1, writeUnits: 0 },
    TransactWriteItems: { calls: 1, failures: 0, readUnits: 0, writeUnits: 4 },
  })
})

test('the store answers on the loopback address, to nobody who calls it by another name', async () => {
  expect(new URL(store.database.url).hostname).toBe('127.0.0.1')
  const status = await new Promise((resolve, reject) => {
    const call = request(`${store.database.url}/_faults`, { headers: { host: 'store.example' } })
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
  expect((await refusalOf(table.create())).name).toBe('UnrecognizedClientException')
  await guarded.close()
})
