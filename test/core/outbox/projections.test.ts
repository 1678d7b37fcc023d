import { projections } from '@platform/core/background/projections'
import * as Audit from '@platform/core/audit/audit'
import { type Projection, runProjections } from '@platform/core/outbox/run-projections'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get, query, remove, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { platformError } from '@platform/core/error'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notifications/notification'
import { singleFlight } from '@platform/core/lib/async'
import { transitionOf } from '@platform/core/outbox/record'
import { expect, test } from 'vitest'
import { handler as consumeEvents } from '../../../functions/queue/events.ts'
import { captureLog } from '../../support/log.ts'
import { newCaller, expectError } from '../../support/fixtures.ts'
import {
  auditEffect,
  auditEntries,
  drainOutbox,
  statusChangedEffect,
  commitEffects,
  writeOutboxRecords,
  pendingRecords,
  runBeforeCommit,
  projectionWrites,
} from '../support/outbox.ts'
import { isLong } from '../../support/long.ts'

const total = (organisationId: string) => ({ pk: `TEST#${organisationId}`, sk: 'TOTAL' })

/** Counts what happens once, and how often it was prepared. */
function counting(organisationId: string) {
  const prepared = new Map<string, number>()
  const book: Projection = {
    name: 'counting',
    beforeCommit: async (_, records) => {
      for (const { id } of records) prepared.set(id, (prepared.get(id) ?? 0) + 1)
    },
    writes: async (_, records) => [upsert(total(organisationId), { add: { count: records.length } })],
  }
  return { book, prepared, count: async () => (await get(total(organisationId)))?.['count'] ?? 0 }
}

const unreadCount = async (caller: Caller): Promise<number> =>
  (await Notification.list(caller, { unreadOnly: true, page: 1, pageSize: 20 })).unreadCount

const seqs = (writes: { seq: number }[]): number[] => writes.map(({ seq }) => seq)
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

/** The same list in another order, always the same for a seed. */
function shuffled<Item>(list: readonly Item[], seed: number): Item[] {
  let state = seed
  const next = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648)
  return list
    .map((item) => [next(), item] as const)
    .toSorted((a, b) => a[0] - b[0])
    .map(([, item]) => item)
}

const sqsEvent = (bodies: readonly string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: String(index), body })),
})

test.each(isLong ? [1, 2, 3] : [1])(
  'under 20 % duplicate, reordered and late messages and several drains at once everything is booked once (%i)',
  async (seed) => {
    const callers = await Promise.all([1, 2].map(() => newCaller()))
    const changes = callers.flatMap((caller) => upTo(60).map((number) => ({ caller, number })))
    const counters = new Map(callers.map(({ organisationId: id }) => [id, counting(id)] as const))

    const messages: string[] = []
    for (const { caller, number } of shuffled(changes, seed)) {
      const told = number % 3 === 0 ? statusChangedEffect(newId('clus'), 'Healthy', 'Offline') : {}
      const transitions = [
        transitionOf({}, undefined, 'Queued'),
        ...(number % 4 === 0 ? [transitionOf({}, 'Queued', 'Failed')] : []),
      ]
      await commitEffects(caller, { ...auditEffect('test.change', `resource ${number}`), ...told, transitions })
      messages.push(JSON.stringify({ organisationId: caller.organisationId }))
    }
    const doubled = [...messages, ...messages.slice(0, messages.length / 5)]
    const arriving = shuffled(doubled, seed + 1)
    const late = arriving.splice(0, arriving.length / 5)

    const batches = upTo(Math.ceil(arriving.length / 10)).map((part) => arriving.slice(part * 10 - 10, part * 10))
    const drains = callers.flatMap(({ organisationId }) => {
      const books = [...projections, counters.get(organisationId)!.book]
      return upTo(3).map(() => runProjections(organisationId, books))
    })
    const answers = await Promise.all([...batches.map((bodies) => consumeEvents(sqsEvent(bodies))), ...drains])
    for (const body of late) await consumeEvents(sqsEvent([body]))
    const failed = answers.flatMap((answer) => (typeof answer === 'boolean' ? [] : answer.batchItemFailures))
    expect(failed).toEqual([])

    for (const caller of callers) {
      const writes = await auditEntries(caller)
      expect(seqs(writes)).toEqual(upTo(60))
      expect(new Set(writes.map(({ resource }) => resource)).size).toBe(60)
      expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 60 })
      expect(await unreadCount(caller)).toBe(20)
      const totals = await get(keys.jobTotals(caller.organisationId))
      expect(totals).toMatchObject({ total: 60, Queued: 45, Failed: 15 })
      expect(await pendingRecords(caller.organisationId)).toEqual([])
    }
  },
)

test('what happens once is counted once, whoever closes; what is prepared is prepared at least once', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const { book, prepared, count } = counting(organisationId)
  const writing = upTo(50).map((number) => commitEffects(caller, auditEffect('test.change', `resource ${number}`)))
  const drains = upTo(5).map(() => runProjections(organisationId, [...projections, book]))
  await Promise.all([...writing, ...drains])
  await runProjections(organisationId, [...projections, book])
  expect(await count()).toBe(50)
  expect(prepared.size).toBe(50)
  expect(seqs(await auditEntries(caller))).toEqual(upTo(50))
})

test('a drain that dies before it closes leaves everything to the next, and nothing is told twice', async () => {
  const admin = await newCaller(newId('org'), 'OrgAdmin')
  const { organisationId } = admin
  await commitEffects(admin, {
    ...auditEffect('test.change'),
    ...statusChangedEffect(newId('clus'), 'Healthy', 'Offline'),
  })
  const records = await pendingRecords(organisationId)

  await runBeforeCommit(organisationId, records)
  expect(await unreadCount(admin)).toBe(1)
  expect(await auditEntries(admin)).toEqual([])
  await drainOutbox(organisationId)
  expect(await unreadCount(admin)).toBe(1)
  expect(await auditEntries(admin)).toHaveLength(1)

  // Late: somebody who had read the records before works on.
  await runBeforeCommit(organisationId, records)
  const closing = records.map(({ id }) => remove(keys.outbox(organisationId, id), { pk: { present: true } }))
  expect(await transact([...closing, ...(await projectionWrites(organisationId, records))])).toMatchObject({ index: 0 })
  expect(await unreadCount(admin)).toBe(1)
  expect(await Audit.verify(admin, { after: 0 })).toMatchObject({ valid: true, entries: 1 })
})

test('two that close the same records from the same head: one does, the other is refused', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await commitEffects(caller, auditEffect('test.change'))
  const records = await pendingRecords(organisationId)
  const stepsOf = () => projectionWrites(organisationId, records)
  const [first, second] = [await stepsOf(), await stepsOf()]
  expect(await transact(first)).toBeUndefined()
  expect(await transact(second)).toBeDefined()
})

test('a record that one book cannot take is in all the others, and a copy of it is set aside', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await writeOutboxRecords(
    caller,
    upTo(30).map((number) => auditEffect('test.change', `resource ${number}`)),
  )
  const broken: Projection = {
    name: 'broken',
    writes: async (_, records) => {
      if (records.some(({ audit }) => audit?.resource === 'resource 7')) throw new TypeError('cannot digest 7')
      return []
    },
  }
  const lines = await captureLog(() => runProjections(organisationId, [...projections, broken]))
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  const writes = await auditEntries(caller)
  expect(seqs(writes)).toEqual(upTo(30))
  expect(writes.map(({ resource }) => resource)).toContain('resource 7')
  expect(await pendingRecords(organisationId)).toEqual([])
  const aside = await query({ pk: keys.quarantinedRecord(keys.outbox(organisationId, '').pk, '').pk })
  expect(aside.items).toHaveLength(1)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 30 })
})

test('a record whose entries the store refuses is set aside, and keeps nobody back', async () => {
  const caller = await newCaller()
  await writeOutboxRecords(caller, [auditEffect('test.change', 'too large'), auditEffect('test.change', 'small')])
  const text = 'x'.repeat(500_000)
  const writes: Projection['writes'] = async (organisationId, records) =>
    records.some(({ audit }) => audit?.resource === 'too large')
      ? [upsert(total(organisationId), { set: { text } })]
      : []
  await captureLog(() => runProjections(caller.organisationId, [...projections, { name: 'refused', writes }]))
  expect((await auditEntries(caller)).map(({ resource }) => resource)).toEqual(['small'])
  const { pk } = keys.quarantinedRecord(keys.outbox(caller.organisationId, '').pk, '')
  expect((await query({ pk })).items).toHaveLength(1)
})

test('a record with an event of a newer release is booked like any other', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await commitEffects(caller, auditEffect('test.change', 'of today'))
  const id = (await pendingRecords(organisationId))[0]?.id ?? ''
  const record = JSON.parse(String((await get(keys.outbox(organisationId, id)))?.['record']))
  record.events = [{ id, name: 'module.invented', subject: 'module', data: {} }]
  await transact([upsert(keys.outbox(organisationId, id), { set: { record: JSON.stringify(record) } })])
  expect(await runProjections(organisationId, projections)).toBe(true)
  expect((await auditEntries(caller)).map(({ resource }) => resource)).toEqual(['of today'])
  expect((await query({ pk: keys.quarantinedRecord(keys.outbox(organisationId, '').pk, '').pk })).items).toEqual([])
})

test('what may pass by itself fails the message and loses nothing', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await commitEffects(caller, auditEffect('test.change'))
  const unreachable: Projection = {
    name: 'unreachable',
    beforeCommit: async () => Promise.reject(platformError('database_unavailable')),
  }
  await expectError(runProjections(organisationId, [...projections, unreachable]), 'database_unavailable')
  expect(await pendingRecords(organisationId)).toHaveLength(1)
  await drainOutbox(organisationId)
  expect(await auditEntries(caller)).toHaveLength(1)
})

test('a message that is none fails alone', async () => {
  const caller = await newCaller()
  await commitEffects(caller, auditEffect('test.change'))
  const bodies = ['broken', JSON.stringify({ organisationId: caller.organisationId }), '{}']
  await captureLog(async () => {
    const { batchItemFailures } = await consumeEvents(sqsEvent(bodies))
    expect(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)).toEqual(['0', '2'])
  })
  expect(await auditEntries(caller)).toHaveLength(1)
})

test('work that is asked for while it runs is asked for once more when it has ended; one name does not wait for another', async () => {
  const begun: string[] = []
  const again: string[] = []
  const gates = new Map<string, () => void>()
  const work = singleFlight(
    async (name) => {
      begun.push(name)
      await new Promise<void>((resolve) => gates.set(name, resolve))
    },
    async (name) => void again.push(name),
  )
  const first = work('a')
  await Promise.all([work('a'), work('a')])
  const other = work('b')
  expect(begun).toEqual(['a', 'b'])
  gates.get('b')!()
  await other
  expect(again).toEqual([])
  gates.get('a')!()
  await first
  expect(again).toEqual(['a'])
})

test('a run that fails loses nothing that was asked for meanwhile', async () => {
  const again: string[] = []
  const work = singleFlight(
    () => Promise.reject(new Error('broken')),
    async (name) => void again.push(name),
  )
  const [first, second] = await Promise.allSettled([work('a'), work('a')])
  expect([first.status, second.status, again]).toEqual(['rejected', 'fulfilled', ['a']])
})
