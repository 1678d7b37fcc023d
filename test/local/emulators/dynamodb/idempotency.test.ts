import { randomUUID } from 'node:crypto'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test } from 'vitest'
import { useFolder } from './support/folder.ts'
import { clientOf, refusalOf, TestTable, useStore } from './support/table.ts'

const dataDir = useFolder()
const store = useStore()

test('a token executes a transaction once, however often and at once it is sent', async () => {
  const { table } = store
  const ClientRequestToken = randomUUID()
  const send = () => table.transact([table.addMember('token', '1', 1)], { ClientRequestToken })
  await Promise.all([send(), send(), send()])
  await send()
  expect(await table.item('token', '1')).toHaveProperty('n', 1)
})

test('a token cannot name another transaction', async () => {
  const { table } = store
  const ClientRequestToken = randomUUID()
  await table.transact([table.addMember('token', '2', 1)], { ClientRequestToken })
  const refusal = await refusalOf(table.transact([table.addMember('token', '2', 2)], { ClientRequestToken }))
  expect(refusal.name).toBe('IdempotentParameterMismatchException')
  expect(await table.item('token', '2')).toHaveProperty('n', 1)
})

test('the order of fields does not make another transaction', async () => {
  const { table } = store
  const ClientRequestToken = randomUUID()
  await table.transact([table.putMember({ pk: 'token', sk: 'order', a: 1, b: 2 })], { ClientRequestToken })
  await table.transact([table.putMember({ b: 2, a: 1, sk: 'order', pk: 'token' })], { ClientRequestToken })
})

test('a cancelled transaction leaves its token free', async () => {
  const { table } = store
  const { name: TableName } = table
  const condition = { ConditionExpression: 'v = :v', ExpressionAttributeValues: { ':v': 1 } }
  const gate = { ConditionCheck: { TableName, Key: { pk: 'token', sk: 'gate' }, ...condition } }
  const ClientRequestToken = randomUUID()
  const send = () => table.transact([table.addMember('token', '3', 1), gate], { ClientRequestToken })
  expect((await refusalOf(send())).name).toBe('TransactionCanceledException')
  await table.put({ pk: 'token', sk: 'gate', v: 1 })
  await send()
  expect(await table.item('token', '3')).toHaveProperty('n', 1)
})

test('a token has at most 36 characters', async () => {
  const members = [store.table.addMember('token', '4', 1)]
  const refusal = await refusalOf(store.table.transact(members, { ClientRequestToken: 'x'.repeat(37) }))
  expect(refusal.name).toBe('ValidationException')
})

test('a token is known after a restart', async () => {
  const ClientRequestToken = randomUUID()
  const first = await startDynamoDb({ dataDir })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  await table.transact([table.addMember('token', '1', 1)], { ClientRequestToken })
  await first.close()
  const second = await startDynamoDb({ dataDir })
  const again = new TestTable(clientOf(second.url), table.name)
  await again.transact([again.addMember('token', '1', 1)], { ClientRequestToken })
  const refusal = await refusalOf(again.transact([again.addMember('token', '1', 2)], { ClientRequestToken }))
  expect(refusal.name).toBe('IdempotentParameterMismatchException')
  expect(await again.item('token', '1')).toHaveProperty('n', 1)
  await second.close()
})
