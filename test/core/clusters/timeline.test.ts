import * as Audit from '@platform/core/audit/audit'
import * as Cluster from '@platform/core/clusters/cluster'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { complete } from '@platform/core/jobs/complete'
import { type OutboxRecord } from '@platform/core/outbox/record'
import { sweep } from '@platform/core/background/sweep'
import * as Timeline from '@platform/core/clusters/timeline'
import { timelineProjection } from '@platform/core/clusters/timeline-projection'
import { type Caller } from '@platform/core/caller'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { newCaller, bootstrapPlatform, callerWithCluster, expectError } from '../../support/fixtures.ts'
import { completionReport, scriptJob, dispatchedJob } from '../support/jobs.ts'
import {
  drainOutbox,
  statusChangedEffect,
  commitEffects,
  writeOutboxRecords,
  pendingRecords,
} from '../support/outbox.ts'

let shiftedMs = 0
const later = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
beforeAll(bootstrapPlatform)
afterEach(() => later(-shiftedMs))

const read = (caller: Caller, clusterId: string, page = 1, pageSize = 100) =>
  Timeline.read(caller, clusterId, { page, pageSize })

async function registered(given?: Caller) {
  const caller = given ?? (await newCaller())
  const { id } = await Cluster.register(caller, { name: `cluster ${newId('clus').slice(-8)}`, type: 'Hypervisor' })
  later(1)
  return { caller, id }
}

const rowsStored = async (organisationId: string, clusterId: string): Promise<number> =>
  (await query({ pk: keys.timeline(organisationId, clusterId, '').pk })).items.length

test('a cluster’s life is told newest first: events, status, jobs, and what people did', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  later(1)
  await Cluster.update(caller, clusterId, { name: 'berlin-2' })
  later(1)
  const jobId = await dispatchedJob(caller, enrolled)
  later(1)
  const { leaseId } = await claim(enrolled.request(), jobId, undefined)
  later(1)
  await complete(enrolled.request(), jobId, completionReport(enrolled, leaseId, 3))
  await drainOutbox(caller.organisationId)

  const { items, totalCount } = await read(caller, clusterId)
  expect(totalCount).toBe(items.length)
  const times = items.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().toReversed())
  const told = items.map(({ kind, title }) => `${kind}: ${title}`)
  expect(told.slice(0, 3)).toEqual(['job: Job failed', 'job: Job started', 'job: Job queued'])
  expect(told.slice(3, 5).toSorted()).toEqual(['audit: cluster.update', 'event: Cluster changed'])
  expect(told.slice(5).toSorted()).toEqual([
    'audit: cluster.register',
    'audit: relay.enroll',
    'event: Cluster registered',
    'event: Relay enrolled',
    'status: Became Healthy',
  ])
  expect(items[0]).toEqual({
    id: expect.stringMatching(/^evt_/),
    at: expect.any(String),
    kind: 'job',
    title: 'Job failed',
    detail: 'exit_nonzero',
    resource: jobId,
    actor: { kind: 'relay', id: enrolled.relay.relayId },
  })
  const update = items.find(({ title }) => title === 'cluster.update')
  expect(update).toMatchObject({ detail: 'berlin-2', actor: { kind: 'user', id: caller.userId } })
})

test('what concerns another cluster, or none, is not told', async () => {
  const { caller, id } = await registered()
  const other = await registered(caller)
  await commitEffects(caller, { audit: { action: 'site.create', resource: newId('site') } })
  await drainOutbox(caller.organisationId)
  for (const clusterId of [id, other.id]) {
    const { items } = await read(caller, clusterId)
    expect(items.map(({ kind }) => kind).toSorted()).toEqual(['audit', 'event'])
  }
})

test('a row is written once, however often its record is prepared', async () => {
  const { caller, id } = await registered()
  const records = await pendingRecords(caller.organisationId)
  await Promise.all([1, 2, 3].map(async () => timelineProjection.beforeCommit?.(caller.organisationId, records)))
  await drainOutbox(caller.organisationId)
  expect((await read(caller, id)).totalCount).toBe(2)
})

/** The same again, a little later. */
const copyOf = (record: OutboxRecord, laterMs: number): OutboxRecord => ({
  ...record,
  atMs: record.atMs + laterMs,
  events: record.events.map((event) => Object.assign({}, event, { id: newId('evt') })),
})

test('rows are told of for 90 days, and the newest 10,000 of them', async () => {
  const { caller, id } = await registered()
  await drainOutbox(caller.organisationId)
  later(90 * 24 * 3_600_000 + 1000)
  expect(await read(caller, id)).toMatchObject({ items: [], totalCount: 0 })
  await writeOutboxRecords(
    caller,
    Array.from({ length: 20 }, () => statusChangedEffect(id, 'Healthy', 'Degraded')),
  )
  const records = await pendingRecords(caller.organisationId)
  for (let copy = 0; copy < 510; copy += 30) {
    const copies = Array.from({ length: 30 }, (_, index) => records.map((record) => copyOf(record, copy + index)))
    await timelineProjection.beforeCommit?.(caller.organisationId, copies.flat())
  }
  const { totalCount } = await read(caller, id)
  expect(totalCount).toBe(10_000)
  expect((await read(caller, id, 100, 100)).items).toHaveLength(100)
  expect((await read(caller, id, 101, 100)).items).toEqual([])
})

test('the timeline is removed with its cluster, and what is booked late leaves nothing behind', async () => {
  const { caller, id } = await registered()
  const { organisationId } = caller
  await writeOutboxRecords(
    caller,
    Array.from({ length: 120 }, () => statusChangedEffect(id, 'Healthy', 'Degraded')),
  )
  await drainOutbox(organisationId)
  expect(await rowsStored(organisationId, id)).toBe(122)
  await commitEffects(caller, statusChangedEffect(id, 'Degraded', 'Offline'))
  await Cluster.remove(caller, id)
  await sweep()
  expect(await rowsStored(organisationId, id)).toBe(0)
  await drainOutbox(organisationId)
  expect(await rowsStored(organisationId, id)).toBe(1)
  later(61_000)
  await sweep()
  later(2000)
  await sweep()
  expect(await rowsStored(organisationId, id)).toBe(0)
  expect(await get(keys.clusterPurge(id))).toBeUndefined()
  await expectError(read(caller, id), 'cluster_not_found')
})

test('jobs of a cluster are told of with what ended them', async () => {
  const { caller, id } = await registered()
  const job = await Job.submit(caller, scriptJob(id))
  later(1)
  await Job.cancel(caller, job.id)
  await drainOutbox(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items[0]).toMatchObject({ title: 'Job cancelled', detail: 'cancelled_by_user', resource: job.id })
})

test('an audit entry that a caller has written is marked, and does not pass for one of the platform', async () => {
  const { caller, id } = await registered()
  await Audit.appendEntry(caller, { action: 'cluster.update', resource: id, detail: 'Approved' })
  await drainOutbox(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items.filter(({ kind }) => kind === 'audit').map(({ title, extra }) => [title, extra])).toEqual([
    ['cluster.update', true],
    ['cluster.register', undefined],
  ])
})
