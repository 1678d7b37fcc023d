import { randomUUID } from 'node:crypto'
import { BatchGetCommand, BatchWriteCommand, PutCommand, TransactGetCommand } from '@aws-sdk/lib-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterEach, expect, test } from 'vitest'
import { TestTable, clientOf, eventually, refusalOf, useStore } from './support/table.ts'

const store = useStore()
const ALWAYS = 1

afterEach(() => store.database.faults.reset())

test.each(['ProvisionedThroughputExceededException', 'ThrottlingException'] as const)(
  'every kind of item call can be refused with %s',
  async (throttleError) => {
    const { database, table } = store
    database.faults.set({ throttleRate: ALWAYS, throttleError })
    const calls = [
      table.put({ pk: 'a', sk: 'b' }),
      table.get('a', 'b'),
      table.query('pk = :p', { ':p': 'a' }),
      table.transact([table.addMember('a', 'b', 1)]),
    ]
    for (const call of calls) expect((await refusalOf(call)).name).toBe(throttleError)
    database.faults.reset()
    expect(await table.item('a', 'b')).toBeUndefined()
  },
)

test('the SDK rides out two refusals by itself', async () => {
  const { database, table } = store
  const patient = new TestTable(clientOf(database.url, 3), table.name)
  database.faults.set({ throttleRate: ALWAYS, remaining: 2 })
  const { $metadata } = await patient.put({ pk: 'patient', sk: '1' })
  expect($metadata.attempts).toBe(3)
  expect(database.faults.read().remaining).toBe(0)
})

test('faults can be kept to some operations', async () => {
  const { database, table } = store
  database.faults.set({ throttleRate: ALWAYS, operations: ['GetItem'] })
  await table.put({ pk: 'some', sk: '1' })
  expect((await refusalOf(table.get('some', '1'))).name).toBe('ProvisionedThroughputExceededException')
})

test('entries of a batch come back unprocessed, and the loop that sends them again ends', async () => {
  const { database, table } = store
  database.faults.set({ unprocessedRate: ALWAYS })
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

test('a transaction meets a conflict, with the reason in one place', async () => {
  const { database, table } = store
  database.faults.set({ transactionConflictRate: ALWAYS })
  const members = ['1', '2', '3'].map((sk) => table.addMember('conflict', sk, 1))
  const refusal = await refusalOf(table.transact(members))
  expect(refusal.name).toBe('TransactionCanceledException')
  const codes = refusal.CancellationReasons.map(({ Code }: { Code: string }) => Code)
  expect(codes.toSorted()).toEqual(['None', 'None', 'TransactionConflict'])
  const Get = { TableName: table.name, Key: { pk: 'conflict', sk: '1' } }
  const read = table.documents.send(new TransactGetCommand({ TransactItems: [{ Get }] }))
  expect((await refusalOf(read)).CancellationReasons).toMatchObject([{ Code: 'TransactionConflict' }])
  expect((await refusalOf(table.put({ pk: 'conflict', sk: '1' }))).name).toBe('TransactionConflictException')
  expect(await table.item('conflict', '1')).toBeUndefined()
})

test('a write whose answer is lost is done', async () => {
  const { database, table } = store
  database.faults.set({ lostAcknowledgementRate: ALWAYS })
  expect((await refusalOf(table.put({ pk: 'lost', sk: '1' }))).message).toMatch(/socket hang up|ECONNRESET/)
  expect(await table.item('lost', '1')).toBeDefined()
})

test('a repeated bare condition fails on its own write, a repeated transaction does not', async () => {
  const { database, table } = store
  const patient = new TestTable(clientOf(database.url, 3), table.name)
  const condition = { ConditionExpression: 'attribute_not_exists(pk)' }
  database.faults.set({ lostAcknowledgementRate: ALWAYS, remaining: 1 })
  const bare = await refusalOf(patient.put({ pk: 'lost', sk: 'bare' }, condition))
  expect(bare.name).toBe('ConditionalCheckFailedException')
  database.faults.set({ remaining: 1 })
  const members = [patient.putMember({ pk: 'lost', sk: 'transact' }, condition), patient.addMember('lost', 'count', 1)]
  const { $metadata } = await patient.transact(members, { ClientRequestToken: randomUUID() })
  expect($metadata.attempts).toBe(2)
  expect(await table.item('lost', 'count')).toHaveProperty('n', 1)
})

test('a hanging call is neither done nor answered, and does not hold up the end', async () => {
  const database = await startDynamoDb()
  const table = new TestTable(clientOf(database.url))
  await table.create()
  database.faults.set({ hangRate: ALWAYS, remaining: 1 })
  const command = new PutCommand({ TableName: table.name, Item: { pk: 'hang', sk: '1' } })
  const hanging = refusalOf(table.documents.send(command))
  await eventually(() => expect(database.faults.read().remaining).toBe(0))
  expect(await table.item('hang', '1')).toBeUndefined()
  await database.close()
  expect((await hanging).message).toMatch(/socket hang up|ECONNRESET/)
})

test('the same seed makes the same faults', async () => {
  const first = await outcomesWithSeed(7)
  expect(new Set(first).size).toBe(2)
  expect(await outcomesWithSeed(7)).toEqual(first)
})

test.each([{ throttleRate: 2 }, { operations: ['Nothing'] }, { seed: -1 }, { unknown: 1 }])(
  '%o is not a setting',
  (change) => {
    const before = store.database.faults.read()
    expect(() => store.database.faults.set(change as never)).toThrow(/cannot be/)
    expect(store.database.faults.read()).toEqual(before)
  },
)

async function outcomesWithSeed(seed: number) {
  store.database.faults.set({ seed, throttleRate: 0.5 })
  const outcomes: string[] = []
  for (let k = 0; k < 40; k += 1) {
    const [outcome] = await Promise.allSettled([store.table.put({ pk: 'seed', sk: '1' })])
    outcomes.push(outcome.status)
  }
  return outcomes
}
