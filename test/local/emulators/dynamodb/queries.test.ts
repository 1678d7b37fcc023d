import { BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { useStore } from './support/table.ts'

const store = useStore()
const COUNT = 40

function itemAt(k: number) {
  return {
    pk: 'Q',
    sk: (k < 30 ? 'A#' : 'B#') + String(k).padStart(4, '0'),
    k,
    even: k % 2 === 0,
    ...(k < 10 && { g1pk: 'G', g1sk: String(k).padStart(3, '0') }),
    ...(k % 5 === 0 && { g2pk: 'S', a: k, b: `b${k}`, c: 'not projected' }),
    ...(k < 12 && { g3pk: 'N', g3n: k }),
  }
}

beforeAll(async () => {
  const requests = Array.from({ length: COUNT }, (_, k) => ({ PutRequest: { Item: itemAt(k) } }))
  for (const half of [requests.slice(0, 20), requests.slice(20)]) {
    await store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: half } }))
  }
})

const numbersOf = (items: Record<string, unknown>[] | undefined) => items?.map(({ k }) => k)
const upTo = (count: number) => Array.from({ length: count }, (_, k) => k)

test.each<[string, Record<string, string>, number[]]>([
  ['begins_with(sk, :a)', { ':a': 'B#' }, upTo(COUNT).slice(30)],
  ['sk BETWEEN :a AND :b', { ':a': 'A#0003', ':b': 'A#0006' }, [3, 4, 5, 6]],
  ['sk < :a', { ':a': 'A#0003' }, [0, 1, 2]],
  ['sk >= :a', { ':a': 'B#0038' }, [38, 39]],
  ['sk = :a', { ':a': 'A#0007' }, [7]],
])('a query with %s finds what it should, in order', async (condition, values, expected) => {
  const page = await store.table.query(`pk = :p AND ${condition}`, { ':p': 'Q', ...values })
  expect(numbersOf(page.Items)).toEqual(expected)
})

test.each([true, false])('pages walk the whole partition, forward: %s', async (ScanIndexForward) => {
  const items = await store.table.all('pk = :p', { ':p': 'Q' }, { Limit: 7, ScanIndexForward })
  expect(numbersOf(items)).toEqual(ScanIndexForward ? upTo(COUNT) : upTo(COUNT).toReversed())
})

test('a page that ends with the last item still names a key to go on from', async () => {
  const { table } = store
  const values = { ':p': 'Q', ':s': 'B#' }
  const page = await table.query('pk = :p AND begins_with(sk, :s)', values, { Limit: 10 })
  expect(page.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'B#0039' })
  const rest = { Limit: 10, ExclusiveStartKey: page.LastEvaluatedKey }
  const next = await table.query('pk = :p AND begins_with(sk, :s)', values, rest)
  expect([next.Count, next.LastEvaluatedKey]).toEqual([0, undefined])
})

test('a filter works on the page after the limit has cut it', async () => {
  const rest = { FilterExpression: 'even = :yes', Limit: 10 }
  const page = await store.table.query('pk = :p', { ':p': 'Q', ':yes': true }, rest)
  expect([page.Count, page.ScannedCount]).toEqual([5, 10])
})

test('pages of an index go on from a key of index and table', async () => {
  const first = await store.table.query('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(first.LastEvaluatedKey).toEqual({ pk: 'Q', sk: 'A#0003', g1pk: 'G', g1sk: '003' })
  const items = await store.table.all('g1pk = :g', { ':g': 'G' }, { IndexName: 'byG1', Limit: 4 })
  expect(numbersOf(items)).toEqual(upTo(10))
})

test('an index holds only items that have its keys, with only the attributes it projects', async () => {
  const page = await store.table.query('g2pk = :g', { ':g': 'S' }, { IndexName: 'byG2' })
  expect(page.Count).toBe(8)
  expect(page.Items).toContainEqual({ pk: 'Q', sk: 'A#0005', g2pk: 'S', a: 5, b: 'b5' })
})

test('numbers are ordered by value', async () => {
  const numbers = [-10, -9.5, -0.001, 0, 0.5, 3, 1e10]
  for (const n of numbers.toReversed()) await store.table.put({ pk: 'NN', sk: `n${n}`, g3pk: 'ordered', g3n: n })
  const ordered = await store.table.all('g3pk = :g', { ':g': 'ordered' }, { IndexName: 'byG3' })
  expect(ordered.map(({ g3n }) => g3n)).toEqual(numbers)
  const above = await store.table.all('g3pk = :g AND g3n > :n', { ':g': 'N', ':n': 7 }, { IndexName: 'byG3' })
  expect(above.map(({ g3n }) => g3n)).toEqual([8, 9, 10, 11])
  expect(above[0]).toEqual({ pk: 'Q', sk: 'A#0008', g3pk: 'N', g3n: 8 })
})

test('an item moves in an index with its key, and leaves with it', async () => {
  const { table } = store
  const countAt = async (g1pk: string) => (await table.query('g1pk = :g', { ':g': g1pk }, { IndexName: 'byG1' })).Count
  await table.put({ pk: 'move', sk: '1', g1pk: 'from', g1sk: 'a' })
  await table.update('move', '1', 'SET g1pk = :to', { ':to': 'to' })
  expect([await countAt('from'), await countAt('to')]).toEqual([0, 1])
  await table.update('move', '1', 'REMOVE g1sk')
  expect(await countAt('to')).toBe(0)
})

test('a page ends at 1 MB', async () => {
  const { table } = store
  for (let k = 0; k < 30; k += 1)
    await table.put({ pk: 'big', sk: String(k).padStart(3, '0'), k, d: 'x'.repeat(100 * 1024) })
  const page = await table.query('pk = :p', { ':p': 'big' })
  expect(page.Count).toBe(11)
  expect(numbersOf(await table.all('pk = :p', { ':p': 'big' }))).toEqual(upTo(30))
})

const ROWS = 20_000
const WRITERS = 8
const BATCH = 25

/** g2pk is the same for all, so only the item's own key keeps the rows apart; g1sk ends in the item's id. */
const rowAt = (id: number) => ({ pk: `p${id % 7}`, sk: `i${id}`, g2pk: 'same', g1pk: 'same', g1sk: `Online#i${id}` })

beforeAll(async () => {
  let next = 0
  const write = async () => {
    while (next < ROWS) {
      const ids = Array.from({ length: BATCH }, (_, offset) => next + offset)
      next += BATCH
      const requests = ids.map((id) => ({ PutRequest: { Item: rowAt(id) } }))
      await store.table.documents.send(new BatchWriteCommand({ RequestItems: { [store.table.name]: requests } }))
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
})

test.each([
  ['equal', 'byG2', 'g2pk'],
  ['unique', 'byG1', 'g1pk'],
])('20,000 items with %s index keys are all found in the index', async (_kind, IndexName, hash) => {
  const rows = await store.table.all(`${hash} = :g`, { ':g': 'same' }, { IndexName })
  expect(new Set(rows.map(({ sk }) => sk)).size).toBe(ROWS)
})

test('pages of equal index keys neither repeat nor miss an item', async () => {
  const query = { IndexName: 'byG2', Limit: 997 }
  for (const ScanIndexForward of [true, false]) {
    const rows = await store.table.all('g2pk = :g', { ':g': 'same' }, { ...query, ScanIndexForward })
    expect([rows.length, new Set(rows.map(({ sk }) => sk)).size]).toEqual([ROWS, ROWS])
  }
})
