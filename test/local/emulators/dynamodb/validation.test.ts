import { PutItemCommand } from '@aws-sdk/client-dynamodb'
import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { refusalOf, useStore } from './support/table.ts'
import type { TestTable } from './support/table.ts'

const store = useStore()
const KILOBYTE = 1024

beforeAll(async () => {
  await store.table.put({ pk: 'L', sk: 'full', d: 'x'.repeat(400 * KILOBYTE - 20) })
})

const raw = (table: TestTable, attribute: Record<string, AttributeValue>) =>
  table.client.send(
    new PutItemCommand({ TableName: table.name, Item: { pk: { S: 'v' }, sk: { S: '1' }, ...attribute } }),
  )
const set = (table: TestTable, expression: string, values?: Record<string, unknown>, rest = {}) =>
  table.update('v', '1', expression, values, rest)

type Case = [name: string, call: (table: TestTable) => Promise<unknown>, message: RegExp]

const SIZES: Case[] = [
  [
    'an item over 400 KB',
    (t) => t.put({ pk: 'L', sk: '1', d: 'x'.repeat(400 * KILOBYTE) }),
    /Item size has exceeded the maximum allowed size/,
  ],
  [
    'an item over 400 KB in UTF-8',
    (t) => t.put({ pk: 'L', sk: '1', d: '漢'.repeat(140 * KILOBYTE) }),
    /Item size has exceeded/,
  ],
  [
    'an update that grows an item over 400 KB',
    (t) => t.update('L', 'full', 'SET e = :e', { ':e': 'x'.repeat(100) }),
    /Item size to update has exceeded the maximum allowed size/,
  ],
  ['a sort key over 1024 bytes', (t) => t.put({ pk: 'L', sk: 'x'.repeat(1025) }), /size limit of 1024 bytes/],
  ['a sort key over 1024 bytes in UTF-8', (t) => t.put({ pk: 'L', sk: '漢'.repeat(342) }), /size limit of 1024 bytes/],
  ['a hash key over 2048 bytes', (t) => t.put({ pk: 'x'.repeat(2049), sk: '1' }), /2048 bytes/],
  [
    'an index sort key over 1024 bytes',
    (t) => t.put({ pk: 'L', sk: '1', g1pk: 'g', g1sk: 'x'.repeat(1025) }),
    /size limit of 1024 bytes/,
  ],
  ['a number of 39 digits', (t) => raw(t, { n: { N: '1'.repeat(39) } }), /38 significant digits/],
]

const KEYS: Case[] = [
  ['an empty key', (t) => t.put({ pk: '', sk: '1' }), /empty string value/],
  ['an empty index key', (t) => t.put({ pk: 'v', sk: '1', g1pk: '', g1sk: 'x' }), /IndexName: byG1, IndexKey: g1pk/],
  ['an empty index key in an update', (t) => set(t, 'SET g1pk = :e', { ':e': '' }), /IndexName: byG1, IndexKey: g1pk/],
  [
    'an index key of the wrong type',
    (t) => t.put({ pk: 'v', sk: '1', g1pk: 5, g1sk: 'x' }),
    /Type mismatch for Index Key/,
  ],
  ['a missing sort key', (t) => t.put({ pk: 'v' }), /Missing the key sk in the item/],
  [
    'a key with an extra attribute',
    (t) => t.get('v', '1', { Key: { pk: 'v', sk: '1', x: 1 } }),
    /does not match the schema/,
  ],
  ['a key of the wrong type', (t) => t.get('v', '1', { Key: { pk: 1, sk: '1' } }), /does not match the schema/],
  [
    'an update of a key',
    (t) => set(t, 'SET pk = :s', { ':s': 'x' }),
    /Cannot update attribute pk. This attribute is part of the key/,
  ],
]

const EXPRESSIONS: Case[] = [
  ['a reserved word', (t) => set(t, 'SET status = :s', { ':s': 1 }), /reserved keyword; reserved keyword: status/],
  ['a syntax error', (t) => set(t, 'SET a == :s', { ':s': 1 }), /Invalid UpdateExpression: Syntax error/],
  [
    'an undefined value',
    (t) => set(t, 'SET a = :s', { ':t': 1 }),
    /value used in expression is not defined; attribute value: :s/,
  ],
  [
    'an undefined name',
    (t) => set(t, 'SET #a = :s', { ':s': 1 }),
    /name used in the document path is not defined; attribute name: #a/,
  ],
  ['an unused value', (t) => set(t, 'SET a = :s', { ':s': 1, ':u': 1 }), /unused in expressions: keys: \{:u\}/],
  [
    'an unused name',
    (t) => set(t, 'SET a = :s', { ':s': 1 }, { ExpressionAttributeNames: { '#u': 'u' } }),
    /unused in expressions: keys: \{#u\}/,
  ],
  ['no value in the values', (t) => set(t, 'REMOVE a', {}), /ExpressionAttributeValues must not be empty/],
  ['overlapping paths', (t) => set(t, 'SET a = :s, a.b = :s', { ':s': 'x' }), /Two document paths overlap/],
  ['arithmetic on a missing attribute', (t) => set(t, 'SET n = n + :o', { ':o': 1 }), /does not exist in the item/],
  [
    'a path into a missing map',
    (t) => set(t, 'SET nomap.a = :o', { ':o': 1 }),
    /document path provided in the update expression is invalid/,
  ],
  ['an empty set', (t) => raw(t, { ss: { SS: [] } }), /may not be empty/],
  [
    'an unknown wish about failed conditions',
    (t) => t.put({ pk: 'v', sk: '1' }, { ReturnValuesOnConditionCheckFailure: 'SOME' as any }),
    /enum value set: \[ALL_OLD, NONE\]/,
  ],
]

const QUERIES: Case[] = [
  [
    'a query without a hash key',
    (t) => t.query('sk = :s', { ':s': 'x' }),
    /Query condition missed key schema element: pk/,
  ],
  [
    'a filter on a key',
    (t) => t.query('pk = :s', { ':s': 'x' }, { FilterExpression: 'sk = :s' }),
    /Filter Expression can only contain non-primary key attributes/,
  ],
  ['a limit of 0', (t) => t.query('pk = :s', { ':s': 'x' }, { Limit: 0 }), /greater than or equal to 1/],
  [
    'an unknown index',
    (t) => t.query('pk = :s', { ':s': 'x' }, { IndexName: 'nope' }),
    /does not have the specified index: nope/,
  ],
  [
    'a start key that lacks a part',
    (t) => t.query('pk = :s', { ':s': 'x' }, { ExclusiveStartKey: { pk: 'x' } }),
    /starting key is invalid/,
  ],
  [
    'a start key of another partition',
    (t) => t.query('pk = :s', { ':s': 'x' }, { ExclusiveStartKey: { pk: 'o', sk: 'y' } }),
    /outside query boundaries/,
  ],
  [
    'BETWEEN with its bounds swapped',
    (t) => t.query('pk = :s AND sk BETWEEN :b AND :a', { ':s': 'x', ':a': 'a', ':b': 'b' }),
    /BETWEEN/,
  ],
]

test.each([...SIZES, ...KEYS, ...EXPRESSIONS, ...QUERIES])('%s is refused', async (_name, call, message) => {
  const refusal = await refusalOf(call(store.table))
  expect(refusal).toMatchObject({ name: 'ValidationException', message: expect.stringMatching(message) })
})

test('an item just under 400 KB is taken', async () => {
  expect(await store.table.item('L', 'full')).toHaveProperty('d')
})
