import { afterAll, expect, test, vi } from 'vitest'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { dispatch } from '@platform/core/jobs/dispatch'
import { enroll } from '@platform/core/relays/enrollment'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { scriptJob } from '../core/support/jobs.ts'
import { type TestResponse, send } from '../support/request.ts'
import { newCaller, enrollRequest, newRelayKey, relayToken, bootstrapPlatform } from '../support/fixtures.ts'
import { type Ask, sentOf } from './fixtures.ts'
import { idPlaces } from './id-places.ts'
import { moduleWorld } from './module-world.ts'
import { type Row, rowNamed, rows } from './table.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())
await bootstrapPlatform()

/** Relay × id: a relay reaches the jobs of its own cluster, and nobody else's, whatever it names. */

/** A cluster with a relay that has claimed one job of two. */
async function working(given?: Caller) {
  const owner = given ?? (await newCaller())
  const key = newRelayKey()
  const { id: clusterId, enrollmentToken } = await Cluster.register(owner, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId, nodes } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const newJob = async () => {
    const { id: jobId } = await Job.submit(owner, scriptJob(clusterId))
    await dispatch({ organisationId: owner.organisationId, jobId })
    return jobId
  }
  const call = async (row: Row, ask: Ask): Promise<TestResponse> => {
    const { target, body = '', headers, ...sent } = sentOf(row, ask, {})
    const identity = await relayToken(relayId, key.privateKey, target, String(body))
    return send(row.handler, { ...sent, target, body, headers: { ...headers, ...identity } })
  }
  const [waiting, running] = [await newJob(), await newJob()]
  const { json } = await call(rowNamed('POST /api/v1/relay/jobs/{id}/claim'), { params: { id: running } })
  return { call, owner, waiting, running, leaseId: json.leaseId, nodeId: nodes[0]?.id ?? '' }
}
type Working = Awaited<ReturnType<typeof working>>

/** What succeeds for the relay that a job is meant for. */
const asks: Record<string, (theirs: Working) => Ask> = {
  'POST /api/v1/relay/jobs/{id}/claim': ({ waiting }) => ({ params: { id: waiting } }),
  'POST /api/v1/relay/jobs/{id}/output': ({ running, leaseId, nodeId }) => ({
    params: { id: running },
    body: { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'x' },
  }),
  'POST /api/v1/relay/jobs/{id}/complete': ({ running, leaseId, nodeId }) => ({
    params: { id: running },
    body: { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] },
  }),
}

const withJob = rows.filter((row) => row.endpoint.access === 'relay' && idPlaces(row).includes('params.id'))

test('every call of a relay about a job is tried', () => {
  expect(withJob.map(({ name }) => name).toSorted()).toEqual(Object.keys(asks).toSorted())
})

test.each(withJob)('$name is for the relay of the job’s cluster alone', async (row) => {
  const theirs = await working()
  const ask = asks[row.name]?.(theirs) ?? {}
  for (const other of [await working(), await working(theirs.owner)]) {
    const before = writes()
    const { status, json } = await other.call(row, ask)
    expect([status, json.error]).toEqual([404, 'job_not_found'])
    expect(writes()).toBe(before)
  }
  expect((await theirs.call(row, ask)).status).toBe(200)
})

test('a lease of another job opens nothing', async () => {
  const [mine, theirs] = [await working(), await working()]
  for (const row of withJob.filter(({ endpoint }) => endpoint.request?.body)) {
    const { body, ...ask } = asks[row.name]?.(mine) ?? {}
    const { status, json } = await mine.call(row, { ...ask, body: { ...body, leaseId: theirs.leaseId } })
    expect([status, json.error]).toEqual([409, 'lease_not_held'])
  }
})

test('a beat tells nothing of other clusters, and moves none of their nodes', async () => {
  const [mine, theirs] = [await working(), await working()]
  const nodes = [{ id: theirs.nodeId, status: 'Offline' }]
  const body = { nodes: [...nodes, { id: mine.nodeId, status: 'Online' }], running: [theirs.running], freeSlots: 4 }
  const { status, json } = await mine.call(rowNamed('POST /api/v1/relay/heartbeat'), { body })
  expect(status).toBe(200)
  expect(json.jobs).toEqual([mine.waiting])
  const { items } = await Cluster.list(theirs.owner, { page: 1, pageSize: 10, status: undefined, type: undefined })
  expect(items.map((cluster) => cluster.status)).toEqual(['Healthy'])
  expect((await Job.read(theirs.owner, theirs.running)).status).toBe('Running')
})
