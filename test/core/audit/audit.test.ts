import { createHash } from 'node:crypto'
import * as Audit from '@platform/core/audit/audit'
import type { Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import { pageOfAll } from '@platform/core/db/index-page'
import * as keys from '@platform/core/db/keys'
import { batchPut, get, remove, replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, sha256 } from '@platform/core/id'
import { beforeAll, describe, expect, test } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { isLong } from '../../support/long.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { auditEffect, readAuditEntries, commitEffects, drainOutbox, writeOutboxRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

const list = (caller: Caller, query: Partial<Audit.AuditQuery> = {}) =>
  Audit.list(caller, { page: 1, pageSize: 100, ...query })
const numbersUpTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

async function organisationWithEntries(count: number): Promise<Caller> {
  const caller = await newCaller()
  const effects = numbersUpTo(count).map((each) => auditEffect('test.change', `resource ${each}`, `detail ${each}`))
  await writeOutboxRecords(caller, effects)
  await drainOutbox(caller.organisationId)
  return caller
}

/** Returns canonical JSON (RFC 8785) for the types that entries contain, independent of the code of the platform. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

/**
 * Verifies exported entries as an external auditor does. Returns the number of entries before the first invalid one.
 */
function countVerifiedEntries(organisationId: string, entries: readonly any[]): number {
  let previousHash = createHash('sha256').update(organisationId).digest('hex')
  for (const [index, { hash, ...content }] of entries.entries()) {
    const computedHash = createHash('sha256').update(canonicalJson(content), 'utf8').digest('hex')
    if (computedHash !== hash || content.previousHash !== previousHash || content.seq !== index + 1) return index
    previousHash = hash
  }
  return entries.length
}

describe('an entry', () => {
  test('can be read and verified for any text', async () => {
    const caller = await newCaller()
    const text = `\ud800 "quoted" \u2028 ünïcödé 😀 ${'x'.repeat(5000)}`
    await commitEffects({ ...caller, address: 'a'.repeat(200) }, auditEffect(text, text, text))
    await drainOutbox(caller.organisationId)
    expect((await list(caller)).items[0]).toMatchObject({ seq: 1, resource: text.slice(0, 200).toWellFormed() })
    expect(countVerifiedEntries(caller.organisationId, await readAuditEntries(caller))).toBe(1)
  })

  test('has a later time than the previous entry, despite clock differences', async () => {
    const caller = await newCaller()
    for (const lagMs of [0, 60_000, -120_000, 0]) {
      shiftClock(lagMs)
      await commitEffects(caller, auditEffect('test.change'))
      await drainOutbox(caller.organisationId)
    }
    shiftClock(60_000)
    const times = (await readAuditEntries(caller)).map(({ at }) => Date.parse(at))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(new Set(times).size).toBe(4)
    expect((await list(caller, { from: times[1]!, to: times[3]! })).items.map(({ seq }) => seq)).toEqual([3, 2])
  })
})

describe('a trail of 130 entries', () => {
  let caller: Caller
  beforeAll(async () => {
    caller = await organisationWithEntries(130)
  })

  test('is filtered exactly by time', async () => {
    const entries = await readAuditEntries(caller)
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
      const { items, totalCount } = await list(caller, { from, to })
      const oldestIndex = Math.max(first, last - 99)
      expect([totalCount, items[0]?.seq, items.at(-1)?.seq]).toEqual([last - first + 1, last, oldestIndex])
      expect(await list(caller, { from })).toMatchObject({ totalCount: 131 - first })
      expect(await list(caller, { to: from })).toMatchObject({ totalCount: first - 1 })
    }
    const timeMs = times[9]!
    for (const filter of [{}, { action: 'test.change' }, { actor: caller.userId, resource: entries[9].resource }]) {
      for (const [from, to] of [
        [timeMs, timeMs],
        [timeMs + 1, timeMs],
        [times[129]! + 1, undefined],
      ]) {
        expect(await list(caller, { ...filter, from, to })).toMatchObject({ items: [], totalCount: 0 })
      }
      expect(await list(caller, { ...filter, from: timeMs, to: timeMs + 1 })).toMatchObject({ totalCount: 1 })
    }
  })

  test.each([
    [1, 10, 11],
    [3, 10, 31],
    [13, 10, 130],
    [14, 0, 130],
  ])('reads keys only up to the requested page of a filter, and one more: page %i', async (page, length, keyCount) => {
    const commands: string[] = []
    let received = 0
    using _ = onStoreCall({
      after: async ({ command, input }, response) => {
        commands.push(command)
        if (input.IndexName !== undefined) received += response.Items?.length ?? 0
      },
    })
    const { items, totalCount } = await list(caller, { action: 'test.change', page, pageSize: 10 })
    expect([items.length, totalCount, received]).toEqual([length, 130, keyCount])
    expect(commands.filter((name) => name === 'QueryCommand')).toHaveLength(2)
  })

  test('is verified in parts', async () => {
    expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 130, headSeq: 130 })
    const starts: number[] = []
    for (let after: number | undefined = 0; after !== undefined;) {
      starts.push(after)
      const part: Awaited<ReturnType<typeof Audit.verify>> = await Audit.verify(caller, { after }, 50)
      expect(part).toMatchObject({ valid: true, entries: Math.min(50, 130 - after) })
      after = part.next
    }
    expect(starts).toEqual([0, 50, 100])
    expect(await Audit.verify(caller, { after: 130 })).toMatchObject({ valid: true, entries: 0 })
    expect(await Audit.verify(caller, { after: 4000 })).toMatchObject({ valid: true, entries: 0 })
  })
})

test('combined filters return exactly the matching entries, on all pages', async () => {
  const ada = await newCaller()
  const colleague = { ...(await newCaller(ada.organisationId)), address: '192.0.2.1' }
  for (const [index, user] of [ada, colleague, ada, colleague, ada, ada, colleague, ada, ada, ada].entries()) {
    await commitEffects(user, auditEffect(index % 2 === 0 ? 'site.create' : 'site.delete', `site ${index % 3}`))
    shiftClock(1000)
  }
  await drainOutbox(ada.organisationId)
  const entries = (await readAuditEntries(ada)).toReversed()
  const times = entries.map(({ at }) => Date.parse(at))
  const choices = {
    actor: [undefined, ada.userId, colleague.userId, 'system'],
    action: [undefined, 'site.create', 'site.delete', 'site'],
    resource: [undefined, 'site 0', 'site 1', 'site 7'],
    from: [undefined, times[7]!],
    to: [undefined, times[2]!],
  }
  const combinations = Object.entries(choices).reduce<Record<string, unknown>[]>(
    (queries, [name, values]) => queries.flatMap((query) => values.map((value) => ({ ...query, [name]: value }))),
    [{}],
  )
  // Seven is coprime to the numbers of choices, so the sample contains every choice.
  const sample = combinations.filter((_, index) => isLong || index % 7 === 0)
  for (const query of sample as Partial<Audit.AuditQuery>[]) {
    const expected = entries.filter(
      ({ actor, action, resource, at }) =>
        (query.actor ?? actor.id) === actor.id &&
        (query.action ?? action) === action &&
        (query.resource ?? resource) === resource &&
        (query.from === undefined || Date.parse(at) >= query.from) &&
        (query.to === undefined || Date.parse(at) < query.to),
    )
    const items = []
    for (let page = 1; page <= 4; page++) {
      const result = await list(ada, { ...query, page, pageSize: 3 })
      expect(result.totalCount).toBe(expected.length)
      items.push(...result.items)
    }
    expect(items).toEqual(expected)
  }
})

test('a query with several filters stops reading when the shortest range ends', async () => {
  const { organisationId } = await newCaller()
  const count = 9000
  const ids = Array.from({ length: count }, (_, index) => newId('aud', 1_700_000_000_000 + index))
  const actorPk = keys.auditPartition(organisationId, 'actor', 'ada')
  const resourcePk = keys.auditPartition(organisationId, 'resource', 'site 1')
  const items = ids.map((id, index) => ({
    ...keys.auditEntry(organisationId, index + 1),
    id,
    gsi1pk: actorPk,
    ...(index === count - 1 && { gsi3pk: resourcePk }),
  }))
  // Limits concurrent connections.
  for (let first = 0; first < count; first += 1000) await batchPut(items.slice(first, first + 1000))
  const ranges = [
    { index: 'gsi1', pk: actorPk },
    { index: 'gsi3', pk: resourcePk },
  ] as const
  for (const order of [ranges, ranges.toReversed()]) {
    const { result, usage } = await measureUsage(() => pageOfAll(order, { page: 1, pageSize: 10 }))
    expect([result.keys.map(({ id }) => id), result.totalCount]).toEqual([ids.slice(-1), 1])
    expect(usage.calls).toEqual(['Query', 'Query'])
  }
  const fullPage = await pageOfAll([ranges[0], ranges[0]], { page: 900, pageSize: 10 })
  expect([fullPage.keys.map(({ id }) => id), fullPage.totalCount]).toEqual([ids.slice(0, 10).toReversed(), count])
})

describe('verification detects tampering with the table', () => {
  const key = keys.auditEntry
  const readEntry = async (id: string, seq: number): Promise<any> => get(key(id, seq))
  const edit = (text: string): string => text.replace(/detail \d/, 'detail X')
  const setEntry = (id: string, attributes: object) => update(key(id, 4), { set: { ...attributes } })

  test.each<[string, number, (organisationId: string) => Promise<unknown>]>([
    ['a changed entry', 4, async (id) => setEntry(id, { entry: edit((await readEntry(id, 4)).entry) })],
    [
      'a changed entry with its hash',
      5,
      async (id) => {
        const entry = edit((await readEntry(id, 4)).entry)
        await setEntry(id, { entry, hash: sha256(entry) })
      },
    ],
    ['an entry of another type', 4, (id) => setEntry(id, { entry: 7 })],
    ['an invalid entry with the right hash', 4, (id) => setEntry(id, { entry: 'invalid', hash: sha256('invalid') })],
    ['a removed first entry', 1, (id) => transact([remove(key(id, 1))])],
    ['a removed entry', 4, (id) => transact([remove(key(id, 4))])],
    ['a removed last entry', 9, (id) => transact([remove(key(id, 9))])],
    ['a changed index key', 4, (id) => setEntry(id, { gsi1pk: keys.auditPartition(id, 'actor', 'unknown') })],
    [
      'swapped entries',
      3,
      async (id) => {
        const [third, fourth] = [await readEntry(id, 3), await readEntry(id, 4)]
        await batchPut([
          { ...third, ...key(id, 4) },
          { ...fourth, ...key(id, 3) },
        ])
      },
    ],
    [
      'a replaced last entry',
      9,
      async (id) => {
        const lastEntry = await readEntry(id, 9)
        const entry = edit(String(lastEntry.entry))
        await batchPut([{ ...lastEntry, entry, hash: sha256(entry) }])
      },
    ],
    [
      'an entry of another organisation',
      1,
      async (id) => {
        const { organisationId } = await organisationWithEntries(1)
        const { pk: _, sk: __, ...foreign } = await readEntry(organisationId, 1)
        await transact([replace(key(id, 1), foreign)])
      },
    ],
  ])('%s: entry %i', async (_, seq, tamper) => {
    const caller = await organisationWithEntries(9)
    expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 9 })
    await tamper(caller.organisationId)
    const result = await Audit.verify(caller, { after: 0 })
    expect(result).toMatchObject({ valid: false, firstBroken: seq, entries: seq === 9 ? expect.any(Number) : seq - 1 })
    expect(result).not.toHaveProperty('next')
    const parts = await Promise.all([0, 3, 6].map((after) => Audit.verify(caller, { after }, 3)))
    expect(parts.filter(({ valid }) => !valid).map(({ firstBroken }) => firstBroken)).toContain(seq)
  })
})
