import { once } from 'node:events'
import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { paginateScan } from '@aws-sdk/lib-dynamodb'
import { CommitLog } from '@platform/local/emulators/dynamodb/commit-log'
import { openDatabase } from '@platform/local/emulators/dynamodb/database'
import { errorName } from '@platform/local/emulators/dynamodb/errors'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rounds } from '../../../support/long.ts'
import { canMount, mountedFolder } from '../../../support/mounted-folder.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { runServer } from '../../support/program.ts'
import { clientOf, rejectionOf, TestTable } from './support.ts'

const folder = await temporaryFolder()
afterAll(() => folder[Symbol.asyncDispose]())

test('concurrent commits share one batch, in order', async () => {
  const commits = new CommitLog(await openDatabase(join(folder.path, 'group')))
  const changes = (value: number) => new Map([['counter', value] as const, [`only${value}`, value] as const])
  await Promise.all([1, 2, 3].map((value) => commits.commit(changes(value))))
  expect([commits.batchCount, commits.latestValue('counter'), commits.latestValue('only1')]).toEqual([1, 3, 1])
})

test('pending values are visible to writers, and are discarded when their batch fails', async () => {
  const database = await openDatabase(join(folder.path, 'failing'))
  const commits = new CommitLog(database)
  await commits.commit(new Map([['key', 'old']]))
  const failingCommit = commits.commit(new Map([['key', 'new']]))
  expect(commits.latestValue('key')).toBe('new')
  await database.close()
  await rejectionOf(failingCommit)
  await database.open()
  expect(commits.latestValue('key')).toBe('old')
  await commits.commit(new Map([['key', null]]))
  expect(commits.latestValue('key')).toBeUndefined()
  await database.close()
})

test.skipIf(!canMount)('a commit that is acknowledged after the disk was full survives a restart', async () => {
  await using disk = await mountedFolder('128m')
  const database = await openDatabase(join(disk.path, 'store'))
  const commits = new CommitLog(database)
  const acknowledgedKeys: string[] = []
  const commitAll = async (prefix: string, length: number) => {
    for (let index = 0; index < 5; index++) {
      const key = `${prefix}${index}`
      const error = await commits.commit(new Map([[key, 'x'.repeat(length)]])).catch(errorName)
      if (error === undefined) acknowledgedKeys.push(key)
      else expect(error).toBe('StorageFullException')
    }
  }
  await commitAll('before', 300)
  const { bavail, bsize } = await statfs(disk.path)
  await writeFile(join(disk.path, 'filling'), Buffer.alloc(bavail * bsize))
  await commitAll('full', 5000)
  expect(acknowledgedKeys).not.toContain('full4')
  await rm(join(disk.path, 'filling'))
  await commitAll('free', 300)
  expect(acknowledgedKeys).toEqual(expect.arrayContaining(['free0', 'free4']))
  await database.close()
  await database.open()
  expect(acknowledgedKeys.filter((key) => database.getSync(key) === undefined)).toEqual([])
  await database.close()
})

const kills = rounds(1, 3)
const acknowledgedPerKill = 400
const dataDir = join(folder.path, 'killed')
const name = 'killed'
const acknowledged = { puts: new Set<string>(), transactions: new Set<string>() }
let items: Record<string, unknown>[]
let indexedItems: Record<string, unknown>[]

async function writeUntilKilled(round: number): Promise<void> {
  await using server = await runServer('dynamodb', dataDir)
  const table = new TestTable(clientOf(server.address), name)
  if (round === 0) await table.create()
  const exit = once(server.child, 'exit')
  let count = 0
  const write = async (writer: number, perform: (id: string) => Promise<unknown>, ids: Set<string>) => {
    for (let number = 0; server.child.exitCode === null && server.child.signalCode === null; number += 1) {
      const id = `${round}-${writer}-${number}`
      const isAcknowledged = await perform(id).then(
        () => true,
        () => false,
      )
      if (isAcknowledged) ids.add(id)
      if (isAcknowledged && ++count === acknowledgedPerKill) server.child.kill('SIGKILL')
    }
  }
  const put = (id: string) => table.put({ pk: 'put', sk: id, v: id, g2pk: 'all' })
  const transact = (id: string) => {
    const members = ['a', 'b', 'c'].map((sk) => table.putMember({ pk: id, sk, v: id, g2pk: 'all' }))
    return table.transact([...members, table.addMember('sum', 'transactions', 1)])
  }
  const writers = Array.from({ length: 8 }, (_, writer) =>
    writer < 5 ? write(writer, put, acknowledged.puts) : write(writer, transact, acknowledged.transactions),
  )
  await Promise.all([...writers, exit])
}

async function scanAll({ documents: client }: TestTable, IndexName?: string): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = []
  for await (const { Items = [] } of paginateScan({ client }, { TableName: name, IndexName })) rows.push(...Items)
  return rows
}

beforeAll(async () => {
  for (let round = 0; round < kills; round += 1) await writeUntilKilled(round)
  const database = await startDynamoDb({ dataDir })
  const table = new TestTable(clientOf(database.url), name)
  items = await scanAll(table)
  indexedItems = await scanAll(table, 'byG2')
  await database.close()
})

test('a kill loses no acknowledged put', () => {
  const storedKeys = new Set(items.filter(({ pk, sk, v }) => pk === 'put' && sk === v).map(({ sk }) => String(sk)))
  expect([...acknowledged.puts].filter((id) => !storedKeys.has(id))).toEqual([])
  expect(acknowledged.puts.size).toBeGreaterThan(0)
})

test('a kill loses no acknowledged transaction, and splits none', () => {
  const members = Map.groupBy(
    items.filter(({ sk }) => ['a', 'b', 'c'].includes(String(sk))),
    ({ pk }) => String(pk),
  )
  expect([...members.values()].filter((rows) => rows.length !== 3)).toEqual([])
  expect([...acknowledged.transactions].filter((id) => !members.has(id))).toEqual([])
  expect(items.find(({ pk }) => pk === 'sum')).toHaveProperty('n', members.size)
})

test('after a kill an index has exactly the rows of the table', () => {
  const rowOf = ({ pk, sk, g2pk }: Record<string, unknown>) => JSON.stringify({ pk, sk, g2pk })
  const expected = items.filter(({ g2pk }) => g2pk !== undefined).map(rowOf)
  expect(indexedItems.map(rowOf).toSorted()).toEqual(expected.toSorted())
})
