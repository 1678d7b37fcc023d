import { createHash } from 'node:crypto'
import { BatchWriteCommand } from '@aws-sdk/lib-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { useStore } from './support/table.ts'

const store = useStore()
const COUNT = 20_000
const WRITERS = 8
const BATCH = 25

/** g2pk is the same for all, so only the item's own key keeps the rows apart; g1sk ends in the item's id. */
const itemAt = (id: number) => ({ pk: `p${id % 7}`, sk: `i${id}`, g2pk: 'same', g1pk: 'same', g1sk: `Online#i${id}` })

const digestOf = (sk: string) =>
  createHash('md5').update('Outliers').update('twins').update(sk).digest('hex').slice(0, 6)

beforeAll(async () => {
  let next = 0
  const write = async () => {
    while (next < COUNT) {
      const ids = Array.from({ length: BATCH }, (_, offset) => next + offset)
      next += BATCH
      const requests = ids.map((id) => ({ PutRequest: { Item: itemAt(id) } }))
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
  expect(new Set(rows.map(({ sk }) => sk)).size).toBe(COUNT)
})

test('items stay apart whose digests share the 24 bits that once told them apart', async () => {
  const seen = new Map<string, string>()
  let id = 0
  while (!seen.has(digestOf(`twin${id}`))) seen.set(digestOf(`twin${id}`), `twin${id++}`)
  const twins = [seen.get(digestOf(`twin${id}`))!, `twin${id}`]
  for (const sk of twins) await store.table.put({ pk: 'twins', sk, g2pk: 'twins' })
  const rows = await store.table.all('g2pk = :g', { ':g': 'twins' }, { IndexName: 'byG2' })
  expect(rows.map(({ sk }) => String(sk)).toSorted()).toEqual(twins.toSorted())
})

test('pages of equal index keys neither repeat nor miss an item', async () => {
  const query = { IndexName: 'byG2', Limit: 997 }
  for (const ScanIndexForward of [true, false]) {
    const rows = await store.table.all('g2pk = :g', { ':g': 'same' }, { ...query, ScanIndexForward })
    expect([rows.length, new Set(rows.map(({ sk }) => sk)).size]).toEqual([COUNT, COUNT])
  }
})
