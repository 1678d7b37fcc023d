import { join } from 'node:path'
import { CommitLog } from '@platform/local/emulators/dynamodb/commit-log'
import { openDatabase } from '@platform/local/emulators/dynamodb/database'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test } from 'vitest'
import { useFolder } from './support/folder.ts'
import { clientOf, refusalOf, TestTable } from './support/table.ts'

const folder = useFolder()

test('tables, items and indexes survive a restart', async () => {
  const dataDir = join(folder, 'restart')
  const first = await startDynamoDb({ dataDir })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  await table.put({ pk: 'a', sk: '1', g2pk: 'g', a: 1 })
  await first.close()
  const second = await startDynamoDb({ dataDir })
  const again = new TestTable(clientOf(second.url), table.name)
  expect(await again.item('a', '1')).toEqual({ pk: 'a', sk: '1', g2pk: 'g', a: 1 })
  expect(await again.all('g2pk = :g', { ':g': 'g' }, { IndexName: 'byG2' })).toHaveLength(1)
  await second.close()
})

test('closing waits for the calls under way', async () => {
  const dataDir = join(folder, 'closing')
  const first = await startDynamoDb({ dataDir })
  const table = new TestTable(clientOf(first.url))
  await table.create()
  const writes = Promise.allSettled(Array.from({ length: 40 }, (_, k) => table.put({ pk: 'a', sk: String(k) })))
  await table.put({ pk: 'b', sk: '1' })
  await first.close()
  const acknowledged = (await writes).filter(({ status }) => status === 'fulfilled').length
  const second = await startDynamoDb({ dataDir })
  const kept = await new TestTable(clientOf(second.url), table.name).all('pk = :p', { ':p': 'a' })
  expect(kept.length).toBeGreaterThanOrEqual(acknowledged)
  await second.close()
})

test('a folder or a port in use is an error, and nothing stays open', async () => {
  const dataDir = join(folder, 'in-use')
  const first = await startDynamoDb({ dataDir })
  await expect(startDynamoDb({ dataDir })).rejects.toThrow()
  const port = Number(new URL(first.url).port)
  const other = join(folder, 'port')
  await expect(startDynamoDb({ dataDir: other, port })).rejects.toThrow(/EADDRINUSE/)
  await first.close()
  await (await startDynamoDb({ dataDir: other, port })).close()
})

test('changes that come at once share a batch, in order', async () => {
  const commits = new CommitLog(await openDatabase(join(folder, 'group')))
  await Promise.all(
    [1, 2, 3].map((value) =>
      commits.commit(
        new Map([
          ['counter', value],
          [`only${value}`, value],
        ]),
      ),
    ),
  )
  expect([commits.batches, commits.latest('counter'), commits.latest('only1')]).toEqual([1, 3, 1])
})

test('what is on its way counts for decisions, and a failed batch takes along what was built on it', async () => {
  const database = await openDatabase(join(folder, 'failing'))
  const commits = new CommitLog(database)
  await commits.commit(new Map([['key', 'old']]))
  const doomed = commits.commit(new Map([['key', 'new']]))
  expect(commits.latest('key')).toBe('new')
  await database.close()
  await refusalOf(doomed)
  await database.open()
  expect(commits.latest('key')).toBe('old')
  await commits.commit(new Map([['key', null]]))
  expect(commits.latest('key')).toBeUndefined()
  await database.close()
})
