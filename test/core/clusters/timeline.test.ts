import * as Audit from '@platform/core/audit/audit'
import { sweep } from '@platform/core/background/sweep'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as Timeline from '@platform/core/clusters/timeline'
import { timelineProjection } from '@platform/core/clusters/timeline-projection'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import type { OutboxRecord } from '@platform/core/outbox/record'
import { beforeAll, expect, test } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { bootstrapPlatform, callerWithCluster, expectError, newCaller } from '../../support/fixtures.ts'
import { dispatchedJob, runJob, scriptJob } from '../support/jobs.ts'
import {
  commitEffects,
  drainOutbox,
  pendingRecords,
  statusChangedEffect,
  writeOutboxRecords,
} from '../support/outbox.ts'

beforeAll(bootstrapPlatform)

const read = (caller: Caller, clusterId: string, page = 1, pageSize = 100) =>
  Timeline.read(caller, clusterId, { page, pageSize })

async function registeredCluster(organisationCaller?: Caller) {
  const caller = organisationCaller ?? (await newCaller())
  const { id } = await Cluster.register(caller, { name: `cluster ${newId('clus').slice(-8)}`, type: 'Hypervisor' })
  advanceClock(1)
  return { caller, id, organisationId: caller.organisationId }
}

const countEntries = async (organisationId: string, clusterId: string): Promise<number> =>
  (await query({ pk: keys.timeline(organisationId, clusterId, '').pk })).items.length

const statusChanges = (clusterId: string, count: number) =>
  Array.from({ length: count }, () => statusChangedEffect(clusterId, 'Healthy', 'Degraded'))

test('lists events, status changes, jobs and audit entries of a cluster, newest first', async () => {
  const { caller, enrolled } = await callerWithCluster()
  const clusterId = enrolled.cluster.id
  advanceClock(1)
  await Cluster.update(caller, clusterId, { name: 'berlin-2' })
  advanceClock(1)
  const jobId = await dispatchedJob(caller, enrolled)
  advanceClock(1)
  await runJob(enrolled, jobId, 3)
  advanceClock(1)
  const { id: cancelledId } = await Job.submit(caller, scriptJob(clusterId))
  await Job.cancel(caller, cancelledId)
  await drainOutbox(caller.organisationId)

  const { items, totalCount } = await read(caller, clusterId)
  expect(totalCount).toBe(items.length)
  const times = items.map(({ at }) => at)
  expect(times).toEqual(times.toSorted().toReversed())
  const titles = items.map(({ kind, title }) => `${kind}: ${title}`)
  expect(titles.slice(0, 2).toSorted()).toEqual(['job: Job cancelled', 'job: Job queued'])
  expect(titles.slice(2, 5).toSorted()).toEqual(['job: Job failed', 'job: Job queued', 'job: Job started'])
  expect(titles.slice(5, 7).toSorted()).toEqual(['audit: cluster.update', 'event: Cluster changed'])
  expect(titles.slice(7).toSorted()).toEqual([
    'audit: cluster.register',
    'audit: relay.enroll',
    'event: Cluster registered',
    'event: Relay enrolled',
    'status: Became Healthy',
  ])
  expect(items.find(({ title }) => title === 'Job failed')).toEqual({
    id: expect.stringMatching(/^evt_/),
    at: expect.any(String),
    kind: 'job',
    title: 'Job failed',
    detail: 'exit_nonzero',
    resource: jobId,
    actor: { kind: 'relay', id: enrolled.relay.relayId },
  })
  const cancellation = { detail: 'cancelled_by_user', resource: cancelledId }
  expect(items.find(({ title }) => title === 'Job cancelled')).toMatchObject(cancellation)
  const update = { detail: 'berlin-2', actor: { kind: 'user', id: caller.userId } }
  expect(items.find(({ title }) => title === 'cluster.update')).toMatchObject(update)
})

test('omits records about other resources', async () => {
  const { caller, id } = await registeredCluster()
  const other = await registeredCluster(caller)
  await commitEffects(caller, { audit: { action: 'site.create', resource: newId('site') } })
  await drainOutbox(caller.organisationId)
  for (const clusterId of [id, other.id]) {
    const { items } = await read(caller, clusterId)
    expect(items.map(({ kind }) => kind).toSorted()).toEqual(['audit', 'event'])
  }
})

test('repeated projections create each entry once', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  const records = await pendingRecords(organisationId)
  await Promise.all([1, 2, 3].map(async () => timelineProjection.beforeCommit?.(organisationId, records)))
  await drainOutbox(organisationId)
  expect((await read(caller, id)).totalCount).toBe(2)
})

const copyOf = (record: OutboxRecord, delayMs: number): OutboxRecord => ({
  ...record,
  atMs: record.atMs + delayMs,
  events: record.events.map((event) => Object.assign({}, event, { id: newId('evt') })),
})

test('shows the newest 10,000 entries of the last 90 days', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  await drainOutbox(organisationId)
  advanceClock(90 * 24 * 3_600_000 + 1000)
  expect(await read(caller, id)).toMatchObject({ items: [], totalCount: 0 })
  await writeOutboxRecords(caller, statusChanges(id, 20))
  const records = await pendingRecords(organisationId)
  for (let copy = 0; copy < 510; copy += 30) {
    const copies = Array.from({ length: 30 }, (_, index) => records.map((record) => copyOf(record, copy + index)))
    await timelineProjection.beforeCommit?.(organisationId, copies.flat())
  }
  expect(await read(caller, id)).toMatchObject({ totalCount: 10_000 })
  expect((await read(caller, id, 100, 100)).items).toHaveLength(100)
  expect((await read(caller, id, 101, 100)).items).toEqual([])
})

test('purges the timeline of a removed cluster, including late entries', async () => {
  const { caller, id, organisationId } = await registeredCluster()
  await writeOutboxRecords(caller, statusChanges(id, 120))
  await drainOutbox(organisationId)
  expect(await countEntries(organisationId, id)).toBe(122)
  await commitEffects(caller, statusChangedEffect(id, 'Degraded', 'Offline'))
  await Cluster.remove(caller, id)
  await sweep()
  expect(await countEntries(organisationId, id)).toBe(0)
  await drainOutbox(organisationId)
  expect(await countEntries(organisationId, id)).toBe(1)
  for (const pauseMs of [61_000, 2000]) {
    advanceClock(pauseMs)
    await sweep()
  }
  expect(await countEntries(organisationId, id)).toBe(0)
  expect(await get(keys.clusterPurge(id))).toBeUndefined()
  await expectError(read(caller, id), 'cluster_not_found')
})

test('marks audit entries that a caller has appended', async () => {
  const { caller, id } = await registeredCluster()
  await Audit.appendEntry(caller, { action: 'cluster.update', resource: id, detail: 'Approved' })
  await drainOutbox(caller.organisationId)
  const { items } = await read(caller, id)
  expect(items.filter(({ kind }) => kind === 'audit').map(({ title, extra }) => [title, extra])).toEqual([
    ['cluster.update', true],
    ['cluster.register', undefined],
  ])
})
