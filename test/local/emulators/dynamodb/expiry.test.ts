import { DescribeTimeToLiveCommand, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, expect, test } from 'vitest'
import { useFolder } from './support/folder.ts'
import { TestTable, clientOf, eventually, refusalOf } from './support/table.ts'

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
  expect((await refusalOf(setExpiry('ttl', false))).message).toBe('TimeToLive is already disabled')
  await setExpiry('ttl', true)
  await eventually(async () => expect(await expiry()).toEqual({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' }))
  expect((await refusalOf(setExpiry('ttl', true))).message).toBe('TimeToLive is already enabled')
})

test('items that were there before expire too, and leave their indexes', async () => {
  await untilGone('before', 'past')
  const rows = await table.all('g2pk = :g', { ':g': 'before' }, { IndexName: 'byG2' })
  expect(rows.map(({ sk }) => sk)).toEqual(['future'])
})

test('only an item whose time has come expires, and a time changed in time counts', async () => {
  database.faults.set({ expiryPaused: true })
  const kept = {
    future: now() + 60,
    ancient: now() - 6 * YEAR_SECONDS,
    text: String(now() - 60),
    milliseconds: Date.now(),
    prolonged: now() - 60,
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
  await table.put({ pk: 'some', sk: 'past', ttl: now() - 60 })
  database.faults.set({ expiryPaused: false })
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
  database.faults.set({ expiryPaused: true })
  await table.put({ pk: 'restart', sk: '1', ttl: now() - 60 })
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
