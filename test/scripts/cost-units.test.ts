import { createTableInput } from '@platform/core/db/schema'
import type { Item } from '@platform/local/emulators/dynamodb/types'
import { expect, test } from 'vitest'
import { kindOf, partitionsOf } from '../../bench/units/partitions.ts'

/** An item of so many bytes: names and values count. */
const itemOf = (bytes: number, more: Record<string, string> = {}): Item => {
  const item: Item = Object.fromEntries(
    Object.entries({ pk: 'P', sk: 'S', ...more }).map(([name, text]) => [name, { S: text }]),
  )
  const taken = Object.entries(item).reduce((sum, [name, { S = '' }]) => sum + name.length + S.length, 0)
  return { ...item, x: { S: 'x'.repeat(bytes - taken - 1) } }
}

test('a write pays for each begun KB of the item, whichever is larger, before or after; in a transaction twice', () => {
  expect(partitionsOf({ after: itemOf(1024), factor: 1 })).toEqual({ P: 1 })
  expect(partitionsOf({ after: itemOf(1025), factor: 1 })).toEqual({ P: 2 })
  expect(partitionsOf({ before: itemOf(3000), after: itemOf(100), factor: 1 })).toEqual({ P: 3 })
  expect(partitionsOf({ before: itemOf(3000), factor: 1 })).toEqual({ P: 3 })
  expect(partitionsOf({ after: itemOf(1025), factor: 2 })).toEqual({ P: 4 })
})

test('an entry of an index pays where it comes, where it goes, and not where it stays', () => {
  const queued = itemOf(500, { id: 'job', gsi3pk: 'Queued', duepk: 'DUE#1', duesk: '1' })
  const running = itemOf(500, { id: 'job', gsi3pk: 'Running', duepk: 'DUE#1', duesk: '1' })
  expect(partitionsOf({ after: queued, factor: 1 })).toEqual({ P: 1, 'gsi3 Queued': 1, 'due DUE#1': 1 })
  expect(partitionsOf({ before: queued, after: running, factor: 1 })).toEqual({
    P: 1,
    'gsi3 Queued': 1,
    'gsi3 Running': 1,
  })
  expect(partitionsOf({ before: queued, after: { ...queued, y: { S: 'z' } }, factor: 2 })).toEqual({ P: 2 })
  // Moved within one partition: deleted and written there.
  const later = itemOf(500, { id: 'job', gsi3pk: 'Queued', duepk: 'DUE#1', duesk: '2' })
  expect(partitionsOf({ before: queued, after: later, factor: 1 })).toEqual({ P: 1, 'due DUE#1': 2 })
  // An item without one of an index's keys is not in it.
  expect(partitionsOf({ after: itemOf(500, { gsi3pk: 'Queued' }), factor: 1 })).toEqual({ P: 1 })
})

test('every index of the table is counted', () => {
  const names = createTableInput('t').GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName)
  const all = { id: 'i', gsi1pk: 'a', gsi2pk: 'b', gsi3pk: 'c', duepk: 'd', duesk: 'e' }
  const counted = Object.keys(partitionsOf({ after: itemOf(500, all), factor: 1 })).filter((name) => name !== 'P')
  expect(counted.map((name) => name.split(' ')[0])).toEqual(names)
})

test('partitions of one kind are one, those of organisations apart from those of things in them', () => {
  const id = '01m81425n9204cmznk8xwrqxaa'
  expect(
    [
      `ORG#org_${id}#JOB#job_${id}`,
      `ORG#org_${id}#OUTBOX`,
      'due DUE#3',
      `gsi3 org_${id}#JOBS#Queued`,
      `RELAY#relay_${id}#REQUEST#abc`,
    ].map(kindOf),
  ).toEqual([
    'ORG#{org}#JOB#{job}',
    'ORG#{org}#OUTBOX',
    'due DUE#{shard}',
    'gsi3 {org}#JOBS#Queued',
    'RELAY#{relay}#REQUEST#{…}',
  ])
})
