import { BatchGetCommand, BatchWriteCommand, PutCommand, TransactGetCommand } from '@aws-sdk/lib-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterEach, expect, test } from 'vitest'
import { createStoreFaults } from '../../../support/emulators/store-faults.ts'
import { useFolder } from './support/folder.ts'
import { TestTable, clientOf, eventually, rejectionOf, useStore } from './support/table.ts'

const faults = createStoreFaults()
const dataDir = useFolder()
const store = useStore({ hooks: faults.hooks })
const ALWAYS = 1
const HOUR_MS = 60 * 60 * 1000

afterEach(() => faults.reset())

test('a throttled call is rejected and not performed, until no fault remains', async () => {
  const { database, table } = store
  faults.set({ throttleRate: ALWAYS })
  const calls = [table.put({ pk: 'a', sk: 'b' }), table.get('a', 'b'), table.query('pk = :p', { ':p': 'a' })]
  for (const call of calls) expect((await rejectionOf(call)).name).toBe('ProvisionedThroughputExceededException')
  faults.set({ operations: ['PutItem'], remaining: 2 })
  expect(await table.item('a', 'b')).toBeUndefined()
  const { $metadata } = await new TestTable(clientOf(database.url, 3), table.name).put({ pk: 'a', sk: 'b' })
  expect($metadata.attempts).toBe(3)
  expect(faults.read().remaining).toBe(0)
})

test('a batch returns entries as unprocessed, and repeating these completes it', async () => {
  const { table } = store
  faults.set({ unprocessedRate: ALWAYS })
  const puts = Array.from({ length: 5 }, (_, k) => ({ PutRequest: { Item: { pk: 'batch', sk: String(k) } } }))
  let writes: BatchWriteCommand['input']['RequestItems'] = { [table.name]: puts }
  let rounds = 0
  while (writes && Object.keys(writes).length > 0) {
    writes = (await table.documents.send(new BatchWriteCommand({ RequestItems: writes }))).UnprocessedItems
    rounds += 1
  }
  expect(rounds).toBe(5)
  const Keys = puts.map(({ PutRequest }) => PutRequest.Item)
  const read = await table.documents.send(new BatchGetCommand({ RequestItems: { [table.name]: { Keys } } }))
  expect(read.Responses?.[table.name]).toHaveLength(1)
  expect(read.UnprocessedKeys?.[table.name]?.Keys).toHaveLength(4)
})

test('a transaction conflict cancels the transaction with one reason, and a single write', async () => {
  const { table } = store
  faults.set({ transactionConflictRate: ALWAYS })
  const refusal = await rejectionOf(table.transact(['1', '2', '3'].map((sk) => table.addMember('conflict', sk, 1))))
  expect(refusal.name).toBe('TransactionCanceledException')
  const codes = refusal.CancellationReasons.map(({ Code }: { Code: string }) => Code)
  expect(codes.toSorted()).toEqual(['None', 'None', 'TransactionConflict'])
  const Get = { TableName: table.name, Key: { pk: 'conflict', sk: '1' } }
  const read = table.documents.send(new TransactGetCommand({ TransactItems: [{ Get }] }))
  expect((await rejectionOf(read)).CancellationReasons).toMatchObject([{ Code: 'TransactionConflict' }])
  expect((await rejectionOf(table.put({ pk: 'conflict', sk: '1' }))).name).toBe('TransactionConflictException')
  expect(await table.item('conflict', '1')).toBeUndefined()
})

test('a write with a lost response is performed', async () => {
  const { table } = store
  faults.set({ lostAcknowledgementRate: ALWAYS })
  expect((await rejectionOf(table.put({ pk: 'lost', sk: '1' }))).message).toMatch(/socket hang up|ECONNRESET/)
  expect(await table.item('lost', '1')).toBeDefined()
})

test('a hanging call is not performed and does not delay closing', async () => {
  const { hooks, set, read } = createStoreFaults()
  const database = await startDynamoDb({ hooks })
  const table = new TestTable(clientOf(database.url))
  await table.create()
  set({ hangRate: ALWAYS, remaining: 1 })
  const command = new PutCommand({ TableName: table.name, Item: { pk: 'hang', sk: '1' } })
  const hanging = rejectionOf(table.documents.send(command))
  await eventually(() => expect(read().remaining).toBe(0))
  expect(await table.item('hang', '1')).toBeUndefined()
  await database.close()
  expect((await hanging).message).toMatch(/socket hang up|ECONNRESET/)
})

const found = async (table: TestTable, g1pk: string) =>
  (await table.all('g1pk = :g', { ':g': g1pk }, { IndexName: 'byG1' })).map(({ sk, v }) => [sk, v])
const itemOf = (g1pk: string, sk: string, v: number) => ({ pk: 'lag', sk, v, g1pk, g1sk: sk })

test('a lagging index shows an earlier state of the table, then every write in order', async () => {
  const { table } = store
  await table.put(itemOf('shown', 'b', 0))
  faults.set({ indexLagMs: HOUR_MS })
  for (let v = 1; v <= 20; v += 1) await table.put(itemOf(v % 2 ? 'odd' : 'shown', 'a', v))
  await table.delete('lag', 'b')
  await table.transact([table.putMember(itemOf('shown', 'c', 1))])
  expect(await table.item('lag', 'a')).toHaveProperty('v', 20)
  expect(await found(table, 'shown')).toEqual([['b', 0]])
  faults.set({ indexLagMs: 20 })
  const expected = [
    ['a', 20],
    ['c', 1],
  ]
  await eventually(async () => expect(await found(table, 'shown')).toEqual(expected))
  expect(await found(table, 'odd')).toEqual([])
})

test('index entries that are pending survive a restart', async () => {
  const { hooks, set } = createStoreFaults()
  set({ indexLagMs: HOUR_MS })
  const first = await startDynamoDb({ dataDir, hooks })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  await table.put(itemOf('kept', 'a', 1))
  await table.put(itemOf('kept', 'a', 2))
  expect(await found(table, 'kept')).toEqual([])
  await first.close()
  const second = await startDynamoDb({ dataDir, hooks: createStoreFaults().hooks })
  expect(await found(new TestTable(clientOf(second.url), table.name), 'kept')).toEqual([['a', 2]])
  await second.close()
})

const outcomes = async () => {
  faults.set({ seed: 7, throttleRate: 0.5 })
  const calls = []
  for (let k = 0; k < 20; k += 1) calls.push(...(await Promise.allSettled([store.table.get('seed', '1')])))
  return calls.map(({ status }) => status)
}

test('the same seed repeats the same faults', async () => {
  const first = await outcomes()
  expect(new Set(first).size).toBe(2)
  expect(await outcomes()).toEqual(first)
  expect(() => faults.set({ unknown: 1 } as object)).toThrow('Unknown fault setting')
})
