import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterEach, expect, test } from 'vitest'
import { useFolder } from './support/folder.ts'
import { TestTable, clientOf, eventually, useStore } from './support/table.ts'

const dataDir = useFolder()
const store = useStore()
const HOUR_MS = 60 * 60 * 1000

const found = async (table: TestTable, g1pk: string) =>
  (await table.all('g1pk = :g', { ':g': g1pk }, { IndexName: 'byG1' })).map(({ sk, v }) => [sk, v])
const itemOf = (g1pk: string, sk: string, v: number) => ({ pk: 'lag', sk, v, g1pk, g1sk: sk })

afterEach(() => store.database.faults.reset())

test('a lagging index shows the table as it was, while the table shows what is', async () => {
  const { database, table } = store
  await table.put(itemOf('shown', 'a', 1))
  await table.put(itemOf('shown', 'b', 1))
  database.faults.set({ indexLagMs: HOUR_MS })
  await table.put(itemOf('shown', 'a', 2))
  await table.delete('lag', 'b')
  await table.transact([table.putMember(itemOf('shown', 'c', 1))])
  expect(await table.item('lag', 'a')).toHaveProperty('v', 2)
  expect(await found(table, 'shown')).toEqual([
    ['a', 1],
    ['b', 1],
  ])
  database.faults.set({ indexLagMs: 0 })
  await eventually(async () =>
    expect(await found(table, 'shown')).toEqual([
      ['a', 2],
      ['c', 1],
    ]),
  )
})

test('rows are applied in the order of the writes', async () => {
  const { database, table } = store
  database.faults.set({ indexLagMs: HOUR_MS })
  for (let v = 1; v <= 20; v += 1) await table.put(itemOf(v % 2 ? 'odd' : 'even', 'x', v))
  database.faults.set({ indexLagMs: 0 })
  await table.put(itemOf('odd', 'x', 21))
  await eventually(async () => expect(await found(table, 'odd')).toEqual([['x', 21]]))
  expect(await found(table, 'even')).toEqual([])
})

test('a row appears by itself when the lag is over', async () => {
  const { database, table } = store
  database.faults.set({ indexLagMs: 20 })
  await table.put(itemOf('soon', 'a', 1))
  await eventually(async () => expect(await found(table, 'soon')).toEqual([['a', 1]]))
})

test('rows that wait are not lost with the process', async () => {
  const first = await startDynamoDb({ dataDir, faults: { indexLagMs: HOUR_MS } })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  await table.put(itemOf('kept', 'a', 1))
  await table.put(itemOf('kept', 'a', 2))
  expect(await found(table, 'kept')).toEqual([])
  await first.close()
  const second = await startDynamoDb({ dataDir })
  expect(await found(new TestTable(clientOf(second.url), table.name), 'kept')).toEqual([['a', 2]])
  await second.close()
})
