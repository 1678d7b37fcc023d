import * as Audit from '@platform/core/audit/audit'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { batchPut } from '@platform/core/db/table'
import { newId, sha256 } from '@platform/core/id'
import { pageOfAll } from '@platform/core/db/index-page'
import { beforeAll, describe, expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { auditEffect, auditEntries, drainOutbox, commitEffects } from '../support/outbox.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { organisationWithEntries, numbersUpTo, countVerifiedEntries } from '../support/trail.ts'
import { measureUsage } from '../support/usage.ts'
import { isLong } from '../../support/long.ts'

const listed = (caller: Parameters<typeof Audit.list>[0], query: Partial<Audit.AuditQuery> = {}) =>
  Audit.list(caller, { page: 1, pageSize: 100, ...query })

test('an entry tells who did what to what, when, from where and in which request', async () => {
  const caller = { ...(await newCaller()), address: '192.0.2.7', tokenId: newId('tok') }
  await commitEffects(caller, auditEffect('site.create', 'site 1', 'Berlin'))
  await drainOutbox(caller.organisationId)
  const { items, totalCount } = await listed(caller)
  expect(totalCount).toBe(1)
  expect(items[0]).toEqual({
    id: expect.stringMatching(/^aud_/),
    seq: 1,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    actor: { kind: 'user', id: caller.userId, tokenId: caller.tokenId },
    action: 'site.create',
    resource: 'site 1',
    detail: 'Berlin',
    address: '192.0.2.7',
    traceId: expect.any(String),
    previousHash: sha256(caller.organisationId),
    hash: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

test('an entry that a caller asks for says so; one that the platform writes does not', async () => {
  const caller = await newCaller()
  await Audit.appendEntry(caller, { action: 'change.approved', resource: 'clus', detail: 'by the board' })
  await commitEffects(caller, auditEffect('site.create'))
  await drainOutbox(caller.organisationId)
  const entries = await auditEntries(caller)
  expect(entries.map(({ action, extra }) => [action, extra])).toEqual([
    ['change.approved', true],
    ['site.create', undefined],
  ])
})

test('texts of any length and form make an entry that can be read and verified', async () => {
  const caller = await newCaller()
  const strange = `\ud800 "quoted" \u2028 ünïcödé 😀 ${'x'.repeat(5000)}`
  await commitEffects({ ...caller, address: 'a'.repeat(200) }, auditEffect(strange, strange, strange))
  await drainOutbox(caller.organisationId)
  expect((await listed(caller)).items[0]).toMatchObject({ seq: 1, resource: strange.slice(0, 200).toWellFormed() })
  expect(countVerifiedEntries(caller.organisationId, await auditEntries(caller))).toBe(1)
})

describe('a trail of 130 entries', async () => {
  let caller: Awaited<ReturnType<typeof organisationWithEntries>>
  beforeAll(async () => {
    caller = await organisationWithEntries(130)
  })

  test('is listed newest first, every entry on one page, all pages with the same count', async () => {
    const pages = await Promise.all([1, 2, 3, 4, 5].map((page) => Audit.list(caller, { page, pageSize: 30 })))
    const seqs = pages.flatMap(({ items }) => items.map(({ seq }) => seq))
    expect(seqs).toEqual(numbersUpTo(130).toReversed())
    expect(pages.map(({ totalCount }) => totalCount)).toEqual([130, 130, 130, 130, 130])
    expect(await Audit.list(caller, { page: 6, pageSize: 30 })).toMatchObject({ items: [], totalCount: 130 })
    expect(await Audit.list(caller, { page: 100_000_000, pageSize: 100 })).toMatchObject({ items: [] })
  })

  test('is found between any two times, exactly', async () => {
    const entries = await auditEntries(caller)
    const times = entries.map(({ at }) => Date.parse(at))
    for (const [first, last] of [
      [1, 130],
      [1, 1],
      [130, 130],
      [13, 64],
      [64, 65],
      [100, 129],
    ] as const) {
      const [from, to] = [times[first - 1]!, times[last - 1]! + 1]
      const { items, totalCount } = await listed(caller, { from, to })
      expect([totalCount, items[0]?.seq, items.at(-1)?.seq]).toEqual([
        last - first + 1,
        last,
        Math.max(first, last - 99),
      ])
      expect(await listed(caller, { from })).toMatchObject({ totalCount: 131 - first })
      expect(await listed(caller, { to: from })).toMatchObject({ totalCount: first - 1 })
    }
    expect(await listed(caller, { from: times[9]!, to: times[9]! })).toMatchObject({ items: [], totalCount: 0 })
    expect(await listed(caller, { from: times[20]!, to: times[9]! })).toMatchObject({ items: [], totalCount: 0 })
    expect(await listed(caller, { from: times[129]! + 1 })).toMatchObject({ items: [], totalCount: 0 })
  })

  test('is verified in parts of any size', async () => {
    expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 130, headSeq: 130 })
    let [after, parts] = [0, 0]
    for (let next: number | undefined = 0; next !== undefined; parts++) {
      after = next
      const part: Awaited<ReturnType<typeof Audit.verify>> = await Audit.verify(caller, { after }, 50)
      expect(part).toMatchObject({ valid: true, entries: Math.min(50, 130 - after) })
      next = part.next
    }
    expect([after, parts]).toEqual([100, 3])
    expect(await Audit.verify(caller, { after: 130 })).toMatchObject({ valid: true, entries: 0 })
    expect(await Audit.verify(caller, { after: 4000 })).toMatchObject({ valid: true, entries: 0 })
  })
})

test('filters and their combinations find exactly what they name, on every page', async () => {
  const ada = await newCaller()
  const other = { ...(await newCaller(ada.organisationId)), address: '192.0.2.1' }
  for (const [index, who] of [ada, other, ada, other, ada, ada, other, ada, ada, ada].entries()) {
    await commitEffects(who, auditEffect(index % 2 === 0 ? 'site.create' : 'site.delete', `site ${index % 3}`))
    shiftClock(1000)
  }
  await drainOutbox(ada.organisationId)
  const all = (await auditEntries(ada)).toReversed()
  const times = all.map(({ at }) => Date.parse(at))

  const choices = {
    actor: [undefined, ada.userId, other.userId, 'system'],
    action: [undefined, 'site.create', 'site.delete', 'site'],
    resource: [undefined, 'site 0', 'site 1', 'site 7'],
    from: [undefined, times[7]!],
    to: [undefined, times[2]!],
  }
  const combined = Object.entries(choices).reduce<Record<string, unknown>[]>(
    (queries, [name, values]) => queries.flatMap((query) => values.map((value) => ({ ...query, [name]: value }))),
    [{}],
  )
  expect(combined).toHaveLength(256)
  // Seven has no part in the numbers of choices: each choice is tried with every other one.
  const tried = combined.filter((_, index) => isLong || index % 7 === 0)
  for (const query of tried as Partial<Audit.AuditQuery>[]) {
    const expected = all.filter(
      ({ actor, action, resource, at }) =>
        (query.actor ?? actor.id) === actor.id &&
        (query.action ?? action) === action &&
        (query.resource ?? resource) === resource &&
        (query.from === undefined || Date.parse(at) >= query.from) &&
        (query.to === undefined || Date.parse(at) < query.to),
    )
    const found = []
    for (let page = 1; page <= 4; page++) {
      const { items, totalCount } = await Audit.list(ada, { ...query, page, pageSize: 3 })
      expect(totalCount).toBe(expected.length)
      found.push(...items)
    }
    expect(found).toEqual(expected)
  }
})

test('a page of a filter asks the store for no more keys than the page needs, and counts the rest', async () => {
  const caller = await organisationWithEntries(130)
  for (const [page, length, walked] of [
    [1, 10, 10],
    [3, 10, 30],
    [13, 10, 130],
    [14, 0, 130],
  ] as const) {
    const [calls, keysSent] = [[] as string[], { count: 0 }]
    using _ = onStoreCall({
      after: async ({ command, input }, answer) => {
        calls.push(command)
        if (input.IndexName !== undefined) keysSent.count += answer.Items?.length ?? 0
      },
    })
    const { items, totalCount } = await Audit.list(caller, { action: 'test.change', page, pageSize: 10 })
    expect([items.length, totalCount, keysSent.count]).toEqual([length, 130, walked])
    expect(calls.filter((name) => name === 'QueryCommand')).toHaveLength(2)
  }
})

test('several filters read no further than the one that ends first', async () => {
  const caller = await newCaller()
  const entries = 9000
  const ids = Array.from({ length: entries }, (_, index) => newId('aud', 1_700_000_000_000 + index))
  const filed = (filter: 'actor' | 'resource', value: string) =>
    keys.auditPartition(caller.organisationId, filter, value)
  const rows = ids.map((id, index) => ({
    ...keys.auditEntry(caller.organisationId, index + 1),
    id,
    gsi1pk: filed('actor', 'ada'),
    ...(index === entries - 1 && { gsi3pk: filed('resource', 'site 1') }),
  }))
  // As many connections at once as all of them would need are not made in time on a busy machine.
  for (let first = 0; first < entries; first += 1000) await batchPut(rows.slice(first, first + 1000))
  const ranges = [
    { index: 'gsi1', pk: filed('actor', 'ada') },
    { index: 'gsi3', pk: filed('resource', 'site 1') },
  ] as const
  for (const both of [ranges, ranges.toReversed()]) {
    const { result, usage } = await measureUsage(() => pageOfAll(both, { page: 1, pageSize: 10 }))
    expect([result.keys.map(({ id }) => id), result.totalCount]).toEqual([ids.slice(-1), 1])
    expect(usage.calls).toEqual(['Query', 'Query'])
  }
  const all = await pageOfAll([ranges[0], ranges[0]], { page: 900, pageSize: 10 })
  expect([all.keys.map(({ id }) => id), all.totalCount]).toEqual([ids.slice(0, 10).toReversed(), entries])
})

test('times ascend along the chain though records come late from a slower clock', async () => {
  const caller = await newCaller()
  for (const lag of [0, 60_000, -120_000, 0]) {
    shiftClock(lag)
    await commitEffects(caller, auditEffect('test.change'))
    await drainOutbox(caller.organisationId)
  }
  shiftClock(60_000)
  const times = (await auditEntries(caller)).map(({ at }) => Date.parse(at))
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(new Set(times).size).toBe(4)
  expect((await listed(caller, { from: times[1]!, to: times[3]! })).items.map(({ seq }) => seq)).toEqual([3, 2])
})

test('a time range that ends before it begins finds nothing, with filters and without', async () => {
  const caller = await newCaller()
  await commitEffects(caller, auditEffect('site.create', 'site 1'))
  await drainOutbox(caller.organisationId)
  const at = Date.parse((await auditEntries(caller))[0].at)
  for (const [from, to, count] of [
    [at + 1, at, 0],
    [at, at, 0],
    [at, at + 1, 1],
  ] as const) {
    for (const filter of [{}, { action: 'site.create' }, { actor: caller.userId, resource: 'site 1' }]) {
      expect(await listed(caller, { ...filter, from, to })).toMatchObject({ totalCount: count })
    }
  }
})
