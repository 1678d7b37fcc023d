import { SQSClient } from '@aws-sdk/client-sqs'
import * as Audit from '@platform/core/audit/audit'
import { projections } from '@platform/core/background/projections'
import { sweep } from '@platform/core/background/sweep'
import { config } from '@platform/core/config'
import type { Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { create, get, query, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { platformError } from '@platform/core/error'
import { newId } from '@platform/core/id'
import { newBatchId } from '@platform/core/jobs/batches/id'
import { findBatch } from '@platform/core/jobs/batches/record'
import { chunk } from '@platform/core/lib/async'
import * as Notification from '@platform/core/notifications/notification'
import { commit } from '@platform/core/outbox/commit'
import { transitionOf } from '@platform/core/outbox/record'
import { type Projection, runProjections } from '@platform/core/outbox/run-projections'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { handler as consumeEvents } from '../../../functions/queue/events.ts'
import { now, shiftClock } from '@platform/core/clock'
import { advanceClock } from '../../support/clock.ts'
import { delaysOfMessages, receiveMessages } from '../support/messages.ts'
import { expectError, newCaller } from '../../support/fixtures.ts'
import { captureLog } from '../../support/log.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { isLong } from '../../support/long.ts'
import * as outbox from '../support/outbox.ts'
import { auditEffect, readAuditEntries, commitEffects, drainOutbox, readPendingRecords } from '../support/outbox.ts'
import { measureUsage } from '../support/usage.ts'

const totalKey = (organisationId: string) => ({ pk: `TEST#${organisationId}`, sk: 'TOTAL' })

/** Returns a projection that counts records in its transaction and keeps the ids of prepared records. */
function countingProjection(organisationId: string) {
  const preparedIds = new Set<string>()
  const projection: Projection = {
    name: 'counting',
    beforeCommit: async (_, records) => records.forEach(({ id }) => preparedIds.add(id)),
    writes: async (_, records) => [upsert(totalKey(organisationId), { add: { count: records.length } })],
  }
  return { projection, prepared: preparedIds, count: async () => (await get(totalKey(organisationId)))?.['count'] ?? 0 }
}

const unreadCount = async (caller: Caller): Promise<number> =>
  (await Notification.list(caller, { unreadOnly: true, page: 1, pageSize: 20 })).unreadCount

const listQuarantined = async (organisationId: string) => {
  const partitions = keys.outboxPartitions(organisationId).map((pk) => keys.quarantinedRecord(pk, '').pk)
  return (await Promise.all(partitions.map((pk) => query({ pk })))).flatMap(({ items }) => items)
}

const numbers = (entries: { seq: number }[]): number[] => entries.map(({ seq }) => seq)
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

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
  'projects each record once despite duplicate, reordered and late messages and concurrent drains (seed %i)',
  async (seed) => {
    const callers = [await newCaller(), await newCaller()]
    const changes = callers.flatMap((caller) => range(60).map((number) => ({ caller, number })))
    const counters = callers.map(({ organisationId }) => countingProjection(organisationId))
    const messages: string[] = []
    for (const { caller, number } of shuffled(changes, seed)) {
      const effects = number % 3 === 0 ? outbox.statusChangedEffect(newId('clus'), 'Healthy', 'Offline') : {}
      const transitions = [
        transitionOf({}, undefined, 'Queued'),
        ...(number % 4 === 0 ? [transitionOf({}, 'Queued', 'Failed')] : []),
      ]
      await commitEffects(caller, { ...auditEffect('test.change', `resource ${number}`), ...effects, transitions })
      messages.push(JSON.stringify({ organisationId: caller.organisationId }))
    }
    const arriving = shuffled([...messages, ...messages.slice(0, messages.length / 5)], seed + 1)
    const lateRecords = arriving.splice(0, arriving.length / 5)
    const batches = range(Math.ceil(arriving.length / 10)).map((part) => arriving.slice(part * 10 - 10, part * 10))
    const runs = callers.flatMap(({ organisationId }, index) =>
      range(3).map(() => runProjections(organisationId, [...projections, counters[index]!.projection])),
    )
    const [responses] = await Promise.all([
      Promise.all(batches.map((bodies) => consumeEvents(sqsEvent(bodies)))),
      Promise.all(runs),
    ])
    for (const body of lateRecords) await consumeEvents(sqsEvent([body]))
    expect(responses.flatMap(({ batchItemFailures }) => batchItemFailures)).toEqual([])
    for (const caller of callers) {
      const entries = await readAuditEntries(caller)
      expect(numbers(entries)).toEqual(range(60))
      expect(new Set(entries.map(({ resource }) => resource)).size).toBe(60)
      expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 60 })
      expect(await unreadCount(caller)).toBe(20)
      const totals = await get(keys.organisationCounts(caller.organisationId))
      expect(totals).toMatchObject({ total: 60, Queued: 45, Failed: 15 })
      expect(await readPendingRecords(caller.organisationId)).toEqual([])
    }
  },
)

test('writes are made once by concurrent drains; preparation runs at least once', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const { projection, prepared, count } = countingProjection(organisationId)
  const commits = range(50).map((number) => commitEffects(caller, auditEffect('test.change', `resource ${number}`)))
  const drains = range(5).map(() => runProjections(organisationId, [...projections, projection]))
  await Promise.all([...commits, ...drains])
  await runProjections(organisationId, [...projections, projection])
  expect(await count()).toBe(50)
  expect(prepared.size).toBe(50)
  expect(numbers(await readAuditEntries(caller))).toEqual(range(50))
})

test('a drain that crashes before its transaction is repeated without duplicates', async () => {
  const admin = await newCaller()
  const { organisationId } = admin
  await commitEffects(admin, {
    ...auditEffect('test.change'),
    ...outbox.statusChangedEffect(newId('clus'), 'Healthy', 'Offline'),
  })
  const [counts, records] = [await outbox.countsOf(organisationId), await readPendingRecords(organisationId)]
  await outbox.runBeforeCommit(organisationId, records)
  expect(await unreadCount(admin)).toBe(1)
  expect(await readAuditEntries(admin)).toEqual([])
  await drainOutbox(organisationId)
  expect(await unreadCount(admin)).toBe(1)
  expect(await readAuditEntries(admin)).toHaveLength(1)
  // A worker that read the records before the drain continues.
  await outbox.runBeforeCommit(organisationId, records)
  const writes = await outbox.projectionWrites(organisationId, records, counts)
  expect(await transact(writes)).toMatchObject({ index: 0 })
  expect(await unreadCount(admin)).toBe(1)
  expect(await Audit.verify(admin, { after: 0 })).toMatchObject({ valid: true, entries: 1 })
})

test('of two transactions from the same state one fails', async () => {
  const caller = await newCaller()
  await commitEffects(caller, auditEffect('test.change'))
  const { organisationId } = caller
  const [counts, records] = [await outbox.countsOf(organisationId), await readPendingRecords(organisationId)]
  const [first, second] = [
    await outbox.projectionWrites(organisationId, records, counts),
    await outbox.projectionWrites(organisationId, records, counts),
  ]
  expect(await transact(first)).toBeUndefined()
  expect(await transact(second)).toBeDefined()
})

test.each([
  ['a few', 3, false],
  ['a backlog of', 65, false],
  ['rejected', 3, true],
])('a run removes %s records that a crashed run projected', async (_, count, isRejected) => {
  const caller = await newCaller()
  const { organisationId } = caller
  const { projection, count: projected } = countingProjection(organisationId)
  const rejectingProjection: Projection = {
    name: 'rejecting',
    writes: async (_organisationId, records) => {
      if (isRejected && records.length > 1) throw new TypeError('cannot process several')
      return []
    },
  }
  const run = () => runProjections(organisationId, [...projections, projection, rejectingProjection])
  await outbox.writeOutboxRecords(
    caller,
    Array.from({ length: count }, () => auditEffect('test.change')),
  )
  for (let crashes = 0; crashes < 2; crashes++) {
    using _ = onStoreCall({
      before: async ({ command, input }) => {
        if (command.startsWith('BatchWrite') && JSON.stringify(input).includes('DeleteRequest'))
          throw platformError('database_unavailable')
      },
    })
    await captureLog(() => run().catch(() => undefined))
  }
  expect((await readPendingRecords(organisationId)).length).toBe(count)
  await run()
  expect([await projected(), (await readAuditEntries(caller)).length]).toEqual([count, count])
  expect(await readPendingRecords(organisationId)).toEqual([])
})

test('a record that one projection rejects is projected by the others and quarantined', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const effects = range(30).map((number) => auditEffect('test.change', `resource ${number}`))
  await outbox.writeOutboxRecords(caller, effects)
  const brokenProjection: Projection = {
    name: 'broken',
    writes: async (_, records) => {
      if (records.some(({ audit }) => audit?.resource === 'resource 7')) throw new TypeError('cannot process 7')
      return []
    },
  }
  const lines = await captureLog(() => runProjections(organisationId, [...projections, brokenProjection]))
  expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
  const entries = await readAuditEntries(caller)
  expect(numbers(entries)).toEqual(range(30))
  expect(entries.map(({ resource }) => resource)).toContain('resource 7')
  expect(await readPendingRecords(organisationId)).toEqual([])
  expect(await listQuarantined(organisationId)).toHaveLength(1)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 30 })
})

test('a record whose writes the store rejects is quarantined without blocking others', async () => {
  const caller = await newCaller()
  await outbox.writeOutboxRecords(caller, [
    auditEffect('test.change', 'too large'),
    auditEffect('test.change', 'small'),
  ])
  const text = 'x'.repeat(500_000)
  const writes: Projection['writes'] = async (organisationId, records) =>
    records.some(({ audit }) => audit?.resource === 'too large')
      ? [upsert(totalKey(organisationId), { set: { text } })]
      : []
  await captureLog(() => runProjections(caller.organisationId, [...projections, { name: 'rejected', writes }]))
  expect((await readAuditEntries(caller)).map(({ resource }) => resource)).toEqual(['small'])
  expect(await listQuarantined(caller.organisationId)).toHaveLength(1)
})

test('a record with an event of a newer release is projected', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await commitEffects(caller, auditEffect('test.change', 'newer'))
  const id = (await readPendingRecords(organisationId))[0]?.id ?? ''
  const record = JSON.parse(String((await get(keys.outbox(organisationId, id)))?.['record']))
  record.events = [{ id, name: 'module.invented', subject: 'module', data: {} }]
  await transact([upsert(keys.outbox(organisationId, id), { set: { record: JSON.stringify(record) } })])
  expect(await runProjections(organisationId, projections)).toBe(true)
  expect((await readAuditEntries(caller)).map(({ resource }) => resource)).toEqual(['newer'])
  expect(await listQuarantined(organisationId)).toEqual([])
})

test('a transient error fails the message and loses no record', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  await commitEffects(caller, auditEffect('test.change'))
  const beforeCommit = async () => Promise.reject(platformError('database_unavailable'))
  const drain = runProjections(organisationId, [...projections, { name: 'unavailable', beforeCommit }])
  await expectError(drain, 'database_unavailable')
  expect(await readPendingRecords(organisationId)).toHaveLength(1)
  await drainOutbox(organisationId)
  expect(await readAuditEntries(caller)).toHaveLength(1)
})

test('only invalid messages of a batch fail', async () => {
  const caller = await newCaller()
  await commitEffects(caller, auditEffect('test.change'))
  const bodies = ['broken', JSON.stringify({ organisationId: caller.organisationId }), '{}']
  await captureLog(async () => {
    const { batchItemFailures } = await consumeEvents(sqsEvent(bodies))
    expect(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)).toEqual(['0', '2'])
  })
  expect(await readAuditEntries(caller)).toHaveLength(1)
})

test('the sweep finds records without a message by the check of their outbox, which ends with an empty outbox', async () => {
  const caller = await newCaller()
  const { organisationId } = caller
  const check = async () => (await get(keys.outboxCheck(organisationId)))?.['duesk']
  await commitEffects(caller, auditEffect('test.change'))
  const scheduledCheck = await check()
  await commitEffects(caller, auditEffect('test.change'))
  expect(await check()).toBe(scheduledCheck)
  await receiveMessages(config.PLAT_QUEUE_EVENTS)
  advanceClock(31_000)
  await sweep()
  expect(await receiveMessages(config.PLAT_QUEUE_EVENTS)).toContainEqual({ organisationId })
  await drainOutbox(organisationId)
  advanceClock(31_000)
  await sweep()
  expect(await check()).toBeUndefined()
  await commitEffects(caller, auditEffect('test.change'))
  expect(await check()).toBeDefined()
})

describe('messages about an organisation', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
  afterEach(() => void vi.useRealTimers())

  /** Returns a function that makes changes, and returns the delays of their messages. */
  async function newOrganisation() {
    const caller = await newCaller()
    advanceClock(1000)
    return (count: number) =>
      delaysOfMessages(config.PLAT_QUEUE_EVENTS, async () => {
        for (let done = 0; done < count; done++) await commitEffects(caller, auditEffect('test.change'))
      })
  }

  test('are delayed after three in a second, and later changes share a delayed message', async () => {
    const [change, changeOther] = [await newOrganisation(), await newOrganisation()]
    expect(await change(6)).toEqual([0, 0, 0, 1])
    expect(await changeOther(1)).toEqual([0])
    advanceClock(900)
    expect(await change(2)).toEqual([1])
    advanceClock(100)
    expect(await change(1)).toEqual([0])
  })

  test('do not wait for a message with a longer delay', async () => {
    const caller = await newCaller()
    advanceClock(1000)
    const change = (canWait?: true) =>
      commit(caller, { writes: [], ...auditEffect('test.change'), ...(canWait && { canWait }) })
    const changes = async () => {
      await change(true)
      for (let done = 0; done < 5; done++) await change()
    }
    expect(await delaysOfMessages(config.PLAT_QUEUE_EVENTS, changes)).toEqual([2, 0, 0, 0, 1])
  })

  test.each([
    ['the clock is set back', -5000, 0, [0, 0]],
    ['the clock is set back while the process runs', -500, 950, [1]],
    ['the process was paused', 5000, 0, [0, 0]],
  ])('are sent again if %s', async (_, clockMs, elapsedMs, delays) => {
    const change = await newOrganisation()
    expect(await change(5)).toEqual([0, 0, 0, 1])
    advanceClock(elapsedMs)
    vi.setSystemTime(Date.now() + clockMs)
    expect(await change(2)).toEqual(delays)
  })

  test('are sent again if an earlier one could not be sent', async () => {
    const change = await newOrganisation()
    await change(3)
    const send = vi.spyOn(SQSClient.prototype, 'send').mockRejectedValue(new Error('The queue is unavailable.'))
    await captureLog(() => change(1)).finally(() => send.mockRestore())
    expect(await change(2)).toEqual([1])
  })
})

describe('of several workers', () => {
  const dayMs = 24 * 3_600_000
  const backlog = 35

  async function callerWithBacklog() {
    const caller = await newCaller()
    for (let count = 0; count < backlog; count++) await commitEffects(caller, auditEffect('test.change'))
    return caller
  }

  /** Calls `then` when the first run has prepared its records. */
  const whenPrepared = (then: () => Promise<unknown>): Projection => {
    let isFirst = true
    return { name: 'waiting', writes: async () => (isFirst && ((isFirst = false), await then()), []) }
  }

  test('one projects a backlog, and the others leave it to that one', async () => {
    const caller = await callerWithBacklog()
    const { organisationId } = caller
    const results: boolean[] = []
    const joinAndCount = async () => {
      results.push(await runProjections(organisationId, projections))
      expect(await readPendingRecords(organisationId)).toHaveLength(backlog)
    }
    expect(await runProjections(organisationId, [...projections, whenPrepared(joinAndCount)])).toBe(true)
    expect(results).toEqual([true])
    expect(await readPendingRecords(organisationId)).toEqual([])
    expect(await readAuditEntries(caller)).toHaveLength(backlog)
  })

  test.each([10_001, -dayMs])('the lease of a crashed one expires, if the clock moves by %i ms', async (elapsedMs) => {
    const caller = await callerWithBacklog()
    const { organisationId } = caller
    await new Promise<void>((resolve) => {
      void runProjections(organisationId, [
        whenPrepared(() => {
          resolve()
          return new Promise(() => undefined)
        }),
      ])
    })
    await runProjections(organisationId, projections)
    expect(await readPendingRecords(organisationId)).toHaveLength(backlog)
    shiftClock(elapsedMs)
    await runProjections(organisationId, projections)
    shiftClock(-elapsedMs)
    expect(await readAuditEntries(caller)).toHaveLength(backlog)
  })

  test('one that was overtaken stops, because the other reads the outbox again', async () => {
    const caller = await newCaller()
    const { organisationId } = caller
    await commitEffects(caller, auditEffect('test.change'))
    const overtake = async () => {
      await runProjections(organisationId, projections)
      await commitEffects(caller, auditEffect('test.change'))
    }
    expect(await runProjections(organisationId, [...projections, whenPrepared(overtake)])).toBe(true)
    expect(await readPendingRecords(organisationId)).toHaveLength(1)
  })
})

test('records that finish many batches are projected in few transactions', async () => {
  const caller = await newCaller()
  const { organisationId, userId: createdBy } = caller
  const batchIds = range(60).map(() => newBatchId())
  const batchOf = (id: string) => ({
    id,
    organisationId,
    submittedCount: 1,
    createdAtMs: now(),
    createdBy,
    expanded: 1,
  })
  await transact(batchIds.map((id) => create(keys.batch(organisationId, id), batchOf(id))))
  const ends = batchIds.map((batchId) => transitionOf({ batchId, clusterId: newId('clus') }, 'Running', 'Completed'))
  const records = chunk(ends, 10).map((transitions) => ({ transitions }))
  await outbox.writeOutboxRecords(caller, records)
  const { usage } = await measureUsage(() => drainOutbox(organisationId))
  // If a transaction were too large, each record would have one of its own.
  expect(usage.calls.filter((command) => command.startsWith('TransactWrite')).length).toBeLessThan(8)
  const batches = await Promise.all(batchIds.map((id) => findBatch(organisationId, id)))
  expect(batches.filter((batch) => batch?.finishedAtMs !== undefined).length).toBe(60)
})
