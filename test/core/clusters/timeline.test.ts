import * as Audit from '@platform/core/audit/audit'
import * as Cluster from '@platform/core/clusters/cluster'
import { shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import * as Lease from '@platform/core/jobs/claim'
import { type OutboxRecord } from '@platform/core/outbox/record'
import { sweep } from '@platform/core/background/sweep'
import * as Timeline from '@platform/core/clusters/timeline'
import { timelineProjection } from '@platform/core/clusters/timeline-projection'
import { type Caller } from '@platform/core/caller'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { completion, script, waitingJob } from '../support/jobs.ts'
import { settle, statusChanged, tell, tellAll, waitingRecords } from '../support/books.ts'

let shiftedMs = 0
const later = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
beforeAll(started)
afterEach(() => later(-shiftedMs))

const read = (caller: Caller, clusterId: string, page = 1, pageSize = 100) =>
  Timeline.read(caller, clusterId, { page, pageSize })

async function registered(given?: Caller) {
  const caller = given ?? (await callerOf())
  const { id } = await Cluster.register(caller, { name: `cluster ${newId('clus').slice(-8)}`, type: 'Hypervisor' })
  later(1)
  return { caller, id }
}

const rowsStored = async (organisationId: string, clusterId: string): Promise<number> =>
  (await query({ pk: keys.timeline(organisationId, clusterId, '').pk })).items.length

test('a cluster’s life is told newest first: events, status, jobs, and what people did', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const clusterId = world.cluster.id
  later(1)
  await Cluster.update(caller, clusterId, { name: 'berlin-2' })
  later(1)
  const jobId = await waitingJob(caller, world)
  later(1)
  const { leaseId } = await Lease.claim(world.request(), jobId, undefined)
  later(1)
  await Lease.complete(world.request(), jobId, completion(world, leaseId, 3))
  await settle(caller.organisationId)

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
    actor: { kind: 'relay', id: world.relay.relayId },
  })
  const update = items.find(({ title }) => title === 'cluster.update')
  expect(update).toMatchObject({ detail: 'berlin-2', actor: { kind: 'user', id: caller.userId } })
})

test('what concerns another cluster, or none, is not told', async () => {
  const { caller, id } = await registered()
  const other = await registered(caller)
  await tell(caller, { audit: { action: 'site.create', resource: newId('site') } })
  await settle(caller.organisationId)
  for (const clusterId of [id, other.id]) {
    const { items } = await read(caller, clusterId)
    expect(items.map(({ kind }) => kind).toSorted()).toEqual(['audit', 'event'])
  }
})

test('a row is written once, however often its record is prepared', async () => {
  const { caller, id } = await registered()
  const records = await waitingRecords(caller.organisationId)
  await Promise.all([1, 2, 3].map(async () => timelineProjection.prepare?.(caller.organisationId, records)))
  await settle(caller.organisationId)
  expect((await read(caller, id)).totalCount).toBe(2)
})

test('pages show each row once, and all count the same', async () => {
  const { caller, id } = await registered()
  for (let round = 0; round < 12; round++) {
    await tell(caller, statusChanged(id, 'Healthy', 'Degraded'))
    later(1)
  }
  await settle(caller.organisationId)
  const all = (await read(caller, id)).items
  expect(all).toHaveLength(14)
  const pages = await Promise.all([1, 2, 3, 4].map((page) => read(caller, id, page, 5)))
  expect(pages.flatMap(({ items }) => items)).toEqual(all)
  expect(pages.map(({ totalCount }) => totalCount)).toEqual([14, 14, 14, 14])
})

test('a cluster of another organisation, an unknown one and strange text are not found', async () => {
  const { caller, id } = await registered()
  await settle(caller.organisationId)
  expect(await refusalOf(read(await callerOf(), id))).toBe('cluster_not_found')
  for (const unknown of [newId('clus'), newId('job'), '', 'x'.repeat(200), '~']) {
    expect(await refusalOf(read(caller, unknown))).toBe('cluster_not_found')
  }
})

/** The same again, a little later. */
const copyOf = (record: OutboxRecord, laterMs: number): OutboxRecord => ({
  ...record,
  atMs: record.atMs + laterMs,
  events: record.events.map((event) => Object.assign({}, event, { id: newId('evt') })),
})

test('rows are told of for 90 days, and the newest 10,000 of them', async () => {
  const { caller, id } = await registered()
  await settle(caller.organisationId)
  later(90 * 24 * 3_600_000 + 1000)
  expect(await read(caller, id)).toMatchObject({ items: [], totalCount: 0 })
  await tellAll(
    caller,
    Array.from({ length: 20 }, () => statusChanged(id, 'Healthy', 'Degraded')),
  )
  const records = await waitingRecords(caller.organisationId)
  for (let copy = 0; copy < 510; copy += 30) {
    const copies = Array.from({ length: 30 }, (_, index) => records.map((record) => copyOf(record, copy + index)))
    await timelineProjection.prepare?.(caller.organisationId, copies.flat())
  }
  const { totalCount } = await read(caller, id)
  expect(totalCount).toBe(10_000)
  expect((await read(caller, id, 100, 100)).items).toHaveLength(100)
  expect((await read(caller, id, 101, 100)).items).toEqual([])
})

test('the timeline is removed with its cluster, and what is booked late leaves nothing behind', async () => {
  const { caller, id } = await registered()
  const { organisationId } = caller
  await tellAll(
    caller,
    Array.from({ length: 120 }, () => statusChanged(id, 'Healthy', 'Degraded')),
  )
  await settle(organisationId)
  expect(await rowsStored(organisationId, id)).toBe(122)
  await tell(caller, statusChanged(id, 'Degraded', 'Offline'))
  await Cluster.remove(caller, id)
  await sweep()
  expect(await rowsStored(organisationId, id)).toBe(0)
  await settle(organisationId)
  expect(await rowsStored(organisationId, id)).toBe(1)
  later(61_000)
  await sweep()
  later(2000)
  await sweep()
  expect(await rowsStored(organisationId, id)).toBe(0)
  expect(await get(keys.clusterPurge(id))).toBeUndefined()
  expect(await refusalOf(read(caller, id))).toBe('cluster_not_found')
})

test('jobs of a cluster are told of with what ended them', async () => {
  const { caller, id } = await registered()
  const job = await Job.submit(caller, script(id))
  later(1)
  await Job.cancel(caller, job.id)
  await settle(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items[0]).toMatchObject({ title: 'Job cancelled', detail: 'cancelled_by_user', resource: job.id })
})

test('an audit entry that a caller has written is marked, and does not pass for one of the platform', async () => {
  const { caller, id } = await registered()
  await Audit.appendEntry(caller, { action: 'cluster.update', resource: id, detail: 'Approved' })
  await settle(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items.filter(({ kind }) => kind === 'audit').map(({ title, extra }) => [title, extra])).toEqual([
    ['cluster.update', true],
    ['cluster.register', undefined],
  ])
})
