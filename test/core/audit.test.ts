import { createHash } from 'node:crypto'
import * as Audit from '@platform/core/audit'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, putAll, remove, replace, transact, update } from '@platform/core/db/table'
import { newId, sha256 } from '@platform/core/id'
import { beforeAll, describe, expect, test } from 'vitest'
import { callerOf } from '../support/world.ts'
import { done, entriesOf, exported, settle, tell, tellAll } from './support/books.ts'

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
const listed = (caller: Parameters<typeof Audit.list>[0], query: Partial<Audit.AuditQuery> = {}) =>
  Audit.list(caller, { page: 1, pageSize: 100, ...query })

/** An organisation with some entries in its chain. */
async function trail(count: number) {
  const caller = callerOf()
  await tellAll(
    caller,
    upTo(count).map((number) => done('test.change', `resource ${number}`, `detail ${number}`)),
  )
  await settle(caller.organisationId)
  return caller
}

/** RFC 8785 for what entries hold, written from the RFC and not from the platform's code. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

/** What an outsider does with an export: the number of entries that hold together, from the first. */
function verifiedByOutsider(organisationId: string, entries: readonly any[]): number {
  let previousHash = createHash('sha256').update(organisationId).digest('hex')
  for (const [index, { hash, ...content }] of entries.entries()) {
    const computed = createHash('sha256').update(canonicalJson(content), 'utf8').digest('hex')
    if (computed !== hash || content.previousHash !== previousHash || content.seq !== index + 1) return index
    previousHash = hash
  }
  return entries.length
}

test('an entry tells who did what to what, when, from where and in which request', async () => {
  const caller = { ...callerOf(), address: '192.0.2.7', tokenId: newId('tok') }
  await tell(caller, done('site.create', 'site 1', 'Berlin'))
  await settle(caller.organisationId)
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
  const caller = callerOf()
  await Audit.add(caller, { action: 'change.approved', resource: 'clus', detail: 'by the board' })
  await tell(caller, done('site.create'))
  await settle(caller.organisationId)
  const entries = await entriesOf(caller)
  expect(entries.map(({ action, extra }) => [action, extra])).toEqual([
    ['change.approved', true],
    ['site.create', undefined],
  ])
})

test('texts of any length and form make an entry that can be read and verified', async () => {
  const caller = callerOf()
  const strange = `\ud800 "quoted" \u2028 ünïcödé 😀 ${'x'.repeat(5000)}`
  await tell({ ...caller, address: 'a'.repeat(200) }, done(strange, strange, strange))
  await settle(caller.organisationId)
  expect((await listed(caller)).items[0]).toMatchObject({ seq: 1, resource: strange.slice(0, 200).toWellFormed() })
  expect(verifiedByOutsider(caller.organisationId, await entriesOf(caller))).toBe(1)
})

describe('a trail of 130 entries', async () => {
  let caller: Awaited<ReturnType<typeof trail>>
  beforeAll(async () => {
    caller = await trail(130)
  })

  test('is listed newest first, every entry on one page, all pages with the same count', async () => {
    const pages = await Promise.all([1, 2, 3, 4, 5].map((page) => Audit.list(caller, { page, pageSize: 30 })))
    const seqs = pages.flatMap(({ items }) => items.map(({ seq }) => seq))
    expect(seqs).toEqual(upTo(130).toReversed())
    expect(pages.map(({ totalCount }) => totalCount)).toEqual([130, 130, 130, 130, 130])
    expect(await Audit.list(caller, { page: 6, pageSize: 30 })).toMatchObject({ items: [], totalCount: 130 })
    expect(await Audit.list(caller, { page: 100_000_000, pageSize: 100 })).toMatchObject({ items: [] })
  })

  test('is found between any two times, exactly', async () => {
    const entries = await entriesOf(caller)
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

  test('is nothing to a caller of another organisation', async () => {
    const stranger = callerOf()
    for (const query of [{}, { actor: caller.userId }, { action: 'test.change' }, { resource: 'resource 7' }]) {
      expect(await listed(stranger, query)).toMatchObject({ items: [], totalCount: 0 })
    }
    expect(await exported(stranger, 'ndjson')).toBe('')
    expect(await Audit.verify(stranger, { after: 0 })).toMatchObject({ valid: true, entries: 0, headSeq: 0 })
  })
})

test('filters and their combinations find exactly what they name, on every page', async () => {
  const ada = callerOf()
  const other = { ...callerOf(ada.organisationId), address: '192.0.2.1' }
  for (const [index, who] of [ada, other, ada, other, ada, ada, other, ada, ada, ada].entries()) {
    await tell(who, done(index % 2 === 0 ? 'site.create' : 'site.delete', `site ${index % 3}`))
    shiftClock(1000)
  }
  await settle(ada.organisationId)
  const all = (await entriesOf(ada)).toReversed()
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
  for (const query of combined as Partial<Audit.AuditQuery>[]) {
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

test('times ascend along the chain though records come late from a slower clock', async () => {
  const caller = callerOf()
  for (const lag of [0, 60_000, -120_000, 0]) {
    shiftClock(lag)
    await tell(caller, done('test.change'))
    await settle(caller.organisationId)
  }
  shiftClock(60_000)
  const times = (await entriesOf(caller)).map(({ at }) => Date.parse(at))
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(new Set(times).size).toBe(4)
  expect((await listed(caller, { from: times[1]!, to: times[3]! })).items.map(({ seq }) => seq)).toEqual([3, 2])
})

/** Hands of somebody who may write to the table. */
const stored = async (organisationId: string, seq: number): Promise<any> => get(keys.auditEntry(organisationId, seq))
const changed = (text: string): string => text.replace(/detail \d/, 'detail X')
const tampering: [string, number, (organisationId: string) => Promise<unknown>][] = [
  [
    'an entry is changed',
    4,
    async (id) => update(keys.auditEntry(id, 4), { set: { entry: changed((await stored(id, 4)).entry) } }),
  ],
  [
    'an entry and its hash are changed',
    5,
    async (id) => {
      const entry = changed((await stored(id, 4)).entry)
      await update(keys.auditEntry(id, 4), { set: { entry, hash: sha256(entry) } })
    },
  ],
  ['an entry is no text any more', 4, (id) => update(keys.auditEntry(id, 4), { set: { entry: 7 } })],
  [
    'an entry is nonsense with the right hash',
    4,
    (id) => update(keys.auditEntry(id, 4), { set: { entry: 'nonsense', hash: sha256('nonsense') } }),
  ],
  ['the first entry is removed', 1, (id) => transact([remove(keys.auditEntry(id, 1))])],
  ['an entry is removed', 4, (id) => transact([remove(keys.auditEntry(id, 4))])],
  ['the last entry is removed', 9, (id) => transact([remove(keys.auditEntry(id, 9))])],
  [
    'an entry is hidden from a filter',
    4,
    (id) => update(keys.auditEntry(id, 4), { set: { gsi1pk: keys.auditPartition(id, 'actor', 'nobody') } }),
  ],
  [
    'two entries change places',
    3,
    async (id) => {
      const [third, fourth] = [await stored(id, 3), await stored(id, 4)]
      await putAll([
        { ...third, ...keys.auditEntry(id, 4) },
        { ...fourth, ...keys.auditEntry(id, 3) },
      ])
    },
  ],
  [
    'the last entry is replaced by a whole one',
    9,
    async (id) => {
      const last = await stored(id, 9)
      const entry = changed(String(last.entry))
      await putAll([{ ...last, entry, hash: sha256(entry) }])
    },
  ],
  [
    'an entry of another organisation is put in its place',
    1,
    async (id) => {
      const { organisationId } = await trail(1)
      const { pk: _, sk: __, ...foreign } = await stored(organisationId, 1)
      await transact([replace(keys.auditEntry(id, 1), foreign)])
    },
  ],
]

test.each(tampering)('%s: verify finds number %i', async (_, seq, tamper) => {
  const caller = await trail(9)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 9 })
  await tamper(caller.organisationId)
  const found = await Audit.verify(caller, { after: 0 })
  expect(found).toMatchObject({ valid: false, firstBroken: seq, entries: seq === 9 ? expect.any(Number) : seq - 1 })
  expect(found).not.toHaveProperty('next')
  // In parts it is found as well.
  const parts = await Promise.all([0, 3, 6].map((after) => Audit.verify(caller, { after }, 3)))
  expect(parts.filter(({ valid }) => !valid).map(({ firstBroken }) => firstBroken)).toContain(seq)
})

/** RFC 4180, read letter by letter. */
function rowsOf(csv: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, end] of csv.matchAll(/"((?:[^"]|"")*)"(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted!.replaceAll('""', '"'))
    if (end === '\r\n') rows.push([])
  }
  return rows.slice(0, -1)
}

const dangerous = ['=1+1', '+1', '-1', '@sum', '\t=1', "'=1", 'a "quoted", cell', 'two\nlines', 'plain', '', "'"]

test('an export joined from its parts verifies in the hands of an outsider, as NDJSON and as CSV', async () => {
  const caller = callerOf()
  const long = 'x'.repeat(1500)
  const details = [...dangerous, ...upTo(1200).map((number) => `${number} ${long}`)]
  await tellAll(
    caller,
    details.map((detail) => done('test.change', 'resource', detail)),
  )
  await settle(caller.organisationId)

  const parts = []
  for (let after: number | undefined = 0; after !== undefined; after = parts.at(-1)!.next) {
    parts.push(await Audit.exportPart(caller, { format: 'ndjson', after }))
  }
  expect(parts.length).toBeGreaterThan(2)
  for (const { text } of parts) expect(Buffer.byteLength(text)).toBeLessThan(2_000_000)

  const entries = await entriesOf(caller)
  expect(entries.map(({ detail }) => detail).toSorted()).toEqual(details.toSorted())
  expect(verifiedByOutsider(caller.organisationId, entries)).toBe(details.length)
  expect(verifiedByOutsider(caller.organisationId, entries.with(700, { ...entries[700], detail: 'forged' }))).toBe(700)

  const [names = [], ...rows] = rowsOf(await exported(caller, 'csv'))
  expect(rows).toHaveLength(details.length)
  const cellsOf = (row: string[]) =>
    Object.fromEntries(names.map((name, index) => [name, row[index]?.replace(/^'/, '')]))
  const rebuilt = rows.map(cellsOf).map((cells) => ({
    ...{ id: cells['id'], seq: Number(cells['seq']), at: cells['at'], action: cells['action'] },
    ...{ resource: cells['resource'], detail: cells['detail'], traceId: cells['traceId'] },
    actor: { kind: cells['actorKind'], id: cells['actorId'] },
    ...{ previousHash: cells['previousHash'], hash: cells['hash'] },
  }))
  expect(verifiedByOutsider(caller.organisationId, rebuilt)).toBe(details.length)
})

test('no cell of a CSV export begins like a formula', async () => {
  const caller = callerOf()
  await tellAll(
    caller,
    dangerous.map((text) => done(text, text, text)),
  )
  await settle(caller.organisationId)
  const [, ...rows] = rowsOf(await exported(caller, 'csv'))
  expect(rows).toHaveLength(dangerous.length)
  for (const cell of rows.flat()) expect(cell).not.toMatch(/^[=+\-@\t\r]/)
})
