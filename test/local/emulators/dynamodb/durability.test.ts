import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { ScanCommand } from '@aws-sdk/lib-dynamodb'
import { CommitLog } from '@platform/local/emulators/dynamodb/commit-log'
import { openDatabase } from '@platform/local/emulators/dynamodb/database'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { expect, test, beforeAll } from 'vitest'
import * as hooks from '../../../support/emulators/hooks.ts'
import { useFolder } from './support/folder.ts'
import { clientOf, rejectionOf, TestTable } from './support/table.ts'

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
  await rejectionOf(doomed)
  await database.open()
  expect(commits.latest('key')).toBe('old')
  await commits.commit(new Map([['key', null]]))
  expect(commits.latest('key')).toBeUndefined()
  await database.close()
})

const SERVE = fileURLToPath(new URL('support/serve.ts', import.meta.url))
const ROUNDS = Number(process.env['KILL_ROUNDS'] ?? 3)
const PUTTERS = 5
const TRANSACTORS = 3
const ACKNOWLEDGED_A_ROUND = 400

type Items = Record<string, unknown>[]

/** What the writers were told, over all rounds. */
const acknowledged = { puts: new Set<string>(), transactions: new Set<string>(), additions: 0 }
let attemptedAdditions = 0
let base: Items
let indexed: Items
const dataDir = useFolder()
const name = 'killed'

async function startProcess() {
  const child = spawn(process.execPath, [SERVE, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [url]: string[] = await once(createInterface(child.stdout), 'line')
  return { child, url: url!, table: new TestTable(clientOf(url!), name) }
}

/** Index rows that wait have to survive as well. */
async function setIndexLag(url: string) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
  await fetch(`${url}/_faults`, { ...init, body: JSON.stringify({ indexLagMs: 60_000 }) })
}

/** Writes until the process is gone; it is killed once enough has been acknowledged. */
async function writeUntilKilled(round: number) {
  const { child, url, table } = await startProcess()
  if (round === 0) await table.create()
  if (round === ROUNDS - 1) await setIndexLag(url)
  const exit = once(child, 'exit')
  let count = 0
  const note = (mark: () => void) => {
    mark()
    count += 1
    if (count === ACKNOWLEDGED_A_ROUND) child.kill('SIGKILL')
  }
  const untilGone = async (write: (number: number) => Promise<unknown>, mark: (number: number) => void) => {
    for (let number = 0; child.exitCode === null && child.signalCode === null; number += 1) {
      await write(number).then(
        () => note(() => mark(number)),
        () => {},
      )
    }
  }
  const putters = Array.from({ length: PUTTERS }, (_, writer) => {
    const id = (number: number) => `${round}-${writer}-${number}`
    const put = (number: number) => table.put({ pk: 'put', sk: id(number), v: id(number), g2pk: 'all', a: number })
    return untilGone(put, (number) => acknowledged.puts.add(id(number)))
  })
  const transactors = Array.from({ length: TRANSACTORS }, (_, writer) => {
    const id = (number: number) => `${round}-${writer}-${number}`
    const transact = (number: number) => {
      attemptedAdditions += 1
      const items = ['a', 'b', 'c'].map((part) => ({ pk: id(number), sk: part, v: id(number), g2pk: 'all', a: number }))
      return table.transact([...items.map((item) => table.putMember(item)), table.addMember('sum', 'transactions', 1)])
    }
    return untilGone(transact, (number) => {
      acknowledged.transactions.add(id(number))
      acknowledged.additions += 1
    })
  })
  await Promise.all([...putters, ...transactors, exit])
}

const rowOf = ({ pk, sk, g2pk, a }: Record<string, unknown>) => JSON.stringify({ pk, sk, g2pk, a })

async function scanAll(table: TestTable, IndexName?: string): Promise<Items> {
  const items: Items = []
  let ExclusiveStartKey: Record<string, unknown> | undefined
  do {
    const page = await table.documents.send(new ScanCommand({ TableName: name, IndexName, ExclusiveStartKey }))
    items.push(...(page.Items ?? []))
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey)
  return items
}

beforeAll(async () => {
  for (let round = 0; round < ROUNDS; round += 1) await writeUntilKilled(round)
  const database = await startDynamoDb({ dataDir, hooks: hooks.dynamoDb })
  const table = new TestTable(clientOf(database.url), name)
  base = await scanAll(table)
  indexed = await scanAll(table, 'byG2')
  await database.close()
})

test('no acknowledged put is lost by a kill', () => {
  const kept = new Set(base.filter(({ pk, sk, v }) => pk === 'put' && sk === v).map(({ sk }) => String(sk)))
  expect([...acknowledged.puts].filter((id) => !kept.has(id))).toEqual([])
  expect(acknowledged.puts.size).toBeGreaterThan(0)
})

test('no acknowledged transaction is lost, and none is torn', () => {
  const parts = Map.groupBy(
    base.filter(({ sk }) => ['a', 'b', 'c'].includes(String(sk))),
    ({ pk }) => String(pk),
  )
  expect([...parts.values()].filter((items) => items.length !== 3)).toEqual([])
  expect([...acknowledged.transactions].filter((id) => !parts.has(id))).toEqual([])
  expect(base.find(({ pk }) => pk === 'sum')).toHaveProperty('n', parts.size)
  expect(parts.size).toBeGreaterThanOrEqual(acknowledged.additions)
  expect(parts.size).toBeLessThanOrEqual(attemptedAdditions)
})

test('the index holds exactly the rows of the table', () => {
  const expected = base.filter(({ g2pk }) => g2pk !== undefined).map(rowOf)
  expect(indexed.map(rowOf).toSorted()).toEqual(expected.toSorted())
})
