import { PutItemCommand } from '@aws-sdk/client-dynamodb'
import { UpdateCommand } from '@aws-sdk/lib-dynamodb'
import { expect, test } from 'vitest'
import { refusalOf, useStore } from './support/table.ts'

const store = useStore()

test('every type of attribute comes back as it was put', async () => {
  const item = {
    pk: 'types',
    sk: 'all',
    text: 'é漢😀',
    empty: '',
    number: 12345.678,
    negative: -0.001,
    bytes: new Uint8Array([0, 255, 1]),
    yes: true,
    nothing: null,
    list: [1, 'a', { x: [] }],
    map: { deep: { er: { v: 1 } } },
    texts: new Set(['a', 'b']),
    numbers: new Set([1, 2.5]),
  }
  await store.table.put(item)
  expect(await store.table.item('types', 'all')).toEqual(item)
})

test('a missing item has no Item', async () => {
  expect(await store.table.get('no', 'where')).not.toHaveProperty('Item')
})

test('a put replaces the whole item and can show the old one', async () => {
  await store.table.put({ pk: 'replace', sk: '1', v: 1, old: true })
  const answer = await store.table.put({ pk: 'replace', sk: '1', v: 2 }, { ReturnValues: 'ALL_OLD' })
  expect(answer.Attributes).toEqual({ pk: 'replace', sk: '1', v: 1, old: true })
  expect(await store.table.item('replace', '1')).toEqual({ pk: 'replace', sk: '1', v: 2 })
})

test('a put cannot show the new item', async () => {
  const refusal = await refusalOf(store.table.put({ pk: 'a', sk: 'b' }, { ReturnValues: 'ALL_NEW' }))
  expect(refusal.name).toBe('ValidationException')
})

test('a failed condition leaves the item alone', async () => {
  await store.table.put({ pk: 'condition', sk: '1', v: 1 })
  const put = store.table.put({ pk: 'condition', sk: '1' }, { ConditionExpression: 'attribute_not_exists(pk)' })
  const refusal = await refusalOf(put)
  expect(refusal).toMatchObject({ name: 'ConditionalCheckFailedException', message: 'The conditional request failed' })
  expect(refusal.Item).toBeUndefined()
  expect(await store.table.item('condition', '1')).toHaveProperty('v', 1)
})

test.each(['put', 'update', 'delete'] as const)(
  'a failed condition of a %s shows the item when asked to',
  async (kind) => {
    const sk = `shown-${kind}`
    await store.table.put({ pk: 'condition', sk, v: 1 })
    const rest = { ConditionExpression: 'v = :no', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }
    const values = { ExpressionAttributeValues: { ':no': 0 } }
    const calls = {
      put: () => store.table.put({ pk: 'condition', sk }, { ...rest, ...values }),
      update: () => store.table.update('condition', sk, 'REMOVE w', { ':no': 0 }, rest),
      delete: () => store.table.delete('condition', sk, { ...rest, ...values }),
    }
    const refusal = await refusalOf(calls[kind]())
    expect(refusal.Item).toEqual({ pk: { S: 'condition' }, sk: { S: sk }, v: { N: '1' } })
  },
)

test('an update computes from the old item and can show the new one', async () => {
  await store.table.put({ pk: 'update', sk: '1', n: 5, list: [1], keep: 'x' })
  const answer = await store.table.update(
    'update',
    '1',
    'SET n = n + :one, c = if_not_exists(c, :ten) + :one, #l = list_append(#l, :l), #m = :m',
    { ':one': 1, ':ten': 10, ':l': [2, 3], ':m': { a: { b: 1 } } },
    { ReturnValues: 'ALL_NEW', ExpressionAttributeNames: { '#m': 'map', '#l': 'list' } },
  )
  const expected = { pk: 'update', sk: '1', n: 6, c: 11, list: [1, 2, 3], map: { a: { b: 1 } }, keep: 'x' }
  expect(answer.Attributes).toEqual(expected)
})

test('an update reaches into maps and lists', async () => {
  await store.table.put({ pk: 'update', sk: 'nested', map: { a: { b: 1 } }, l: [1, 2, 3], keep: 1 })
  const answer = await store.table.update(
    'update',
    'nested',
    'SET #m.a.b = :v, l[1] = :w REMOVE l[0], keep',
    { ':v': 9, ':w': 'W' },
    { ReturnValues: 'ALL_NEW', ExpressionAttributeNames: { '#m': 'map' } },
  )
  expect(answer.Attributes).toEqual({ pk: 'update', sk: 'nested', map: { a: { b: 9 } }, l: ['W', 3] })
})

test('ADD and DELETE change numbers and sets, and an emptied set goes away', async () => {
  const { table } = store
  await table.update('sets', '1', 'ADD n :n, s :s', { ':n': 3, ':s': new Set(['a', 'b']) })
  const values = { ':n': -1, ':s': new Set(['a']) }
  const first = await table.update('sets', '1', 'ADD n :n DELETE s :s', values, { ReturnValues: 'ALL_NEW' })
  expect(first.Attributes).toEqual({ pk: 'sets', sk: '1', n: 2, s: new Set(['b']) })
  const second = await table.update('sets', '1', 'DELETE s :s', { ':s': new Set(['b']) }, { ReturnValues: 'ALL_NEW' })
  expect(second.Attributes).toEqual({ pk: 'sets', sk: '1', n: 2 })
})

test('an update shows only what it updated when asked to, before or after', async () => {
  const { table } = store
  await table.put({ pk: 'updated', sk: '1', n: 2, other: 1 })
  const old = await table.update('updated', '1', 'SET n = :n', { ':n': 7 }, { ReturnValues: 'UPDATED_OLD' })
  expect(old.Attributes).toEqual({ n: 2 })
  const current = await table.update('updated', '1', 'SET n = :n', { ':n': 8 }, { ReturnValues: 'UPDATED_NEW' })
  expect(current.Attributes).toEqual({ n: 8 })
})

test.each(['ALL_OLD', 'UPDATED_OLD'] as const)('%s of an item that was not there is absent', async (ReturnValues) => {
  const answer = await store.table.update('new', ReturnValues, 'SET n = :n', { ':n': 7 }, { ReturnValues })
  expect(answer).not.toHaveProperty('Attributes')
})

test('an update without an expression creates the item', async () => {
  const { documents, name } = store.table
  await documents.send(new UpdateCommand({ TableName: name, Key: { pk: 'bare', sk: '1' } }))
  expect(await store.table.item('bare', '1')).toEqual({ pk: 'bare', sk: '1' })
})

test('of two updates from the same version the second fails', async () => {
  await store.table.put({ pk: 'version', sk: '1', version: 1 })
  const next = () =>
    store.table.update(
      'version',
      '1',
      'SET version = version + :one',
      { ':one': 1, ':seen': 1 },
      { ConditionExpression: 'version = :seen' },
    )
  await next()
  expect((await refusalOf(next())).name).toBe('ConditionalCheckFailedException')
})

test('a delete can show what it deleted, and has nothing against a missing item', async () => {
  const { table } = store
  await table.put({ pk: 'delete', sk: '1', v: 3 })
  const rest = { ConditionExpression: 'v = :no', ExpressionAttributeValues: { ':no': 1 } }
  expect((await refusalOf(table.delete('delete', '1', rest))).name).toBe('ConditionalCheckFailedException')
  expect((await table.delete('delete', '1', { ReturnValues: 'ALL_OLD' })).Attributes).toHaveProperty('v', 3)
  expect(await table.delete('delete', '1', { ReturnValues: 'ALL_OLD' })).not.toHaveProperty('Attributes')
})

test.each<[string, Record<string, unknown>]>([
  ['size(s) = :v', { ':v': 5 }],
  ['contains(l, :v)', { ':v': 'x' }],
  ['contains(ss, :v)', { ':v': 'q' }],
  ['n IN (:a, :b)', { ':a': 4, ':b': 5 }],
  ['n BETWEEN :a AND :b', { ':a': 1, ':b': 9 }],
  ['attribute_type(n, :t)', { ':t': 'N' }],
  ['begins_with(s, :p) AND NOT (n = :z)', { ':p': 'he', ':z': 1 }],
  ['n = :z OR (s <> :z AND attribute_exists(l[1]))', { ':z': 1 }],
  ['attribute_not_exists(m.absent) AND m.present = :one', { ':one': 1 }],
])('the condition %s holds', async (ConditionExpression, values) => {
  const item = { pk: 'functions', sk: '1', s: 'hello', l: ['x', 'y'], n: 5, ss: new Set(['q']), m: { present: 1 } }
  await store.table.put(item)
  await store.table.update('functions', '1', 'SET ok = :yes', { ...values, ':yes': true }, { ConditionExpression })
})

test('a projection reaches into maps and lists', async () => {
  await store.table.put({ pk: 'projection', sk: '1', map: { a: { b: 9, c: 8 } }, l: ['W', 3], other: 1 })
  const { Item } = await store.table.get('projection', '1', {
    ProjectionExpression: '#m.a.b, l[0]',
    ExpressionAttributeNames: { '#m': 'map' },
  })
  expect(Item).toEqual({ map: { a: { b: 9 } }, l: ['W'] })
})

test('numbers keep 38 digits', async () => {
  const N = '12345678901234567890123456789012345678'
  const Item = { pk: { S: 'digits' }, sk: { S: '1' }, n: { N } }
  await store.table.client.send(new PutItemCommand({ TableName: store.table.name, Item }))
  const { Attributes } = await store.table.client.send(
    new PutItemCommand({ TableName: store.table.name, Item, ReturnValues: 'ALL_OLD' }),
  )
  expect(Attributes?.['n']).toEqual({ N })
})
