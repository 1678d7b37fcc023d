import { afterAll, expect, test, vi } from 'vitest'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { scriptJob } from '../core/support/jobs.ts'
import { bearer, bootstrapPlatform, enrollRequest, newCaller, newRelayKey, relayToken } from '../support/fixtures.ts'
import { type TestResponse, send } from '../support/request.ts'
import { call, type RequestParts, toRequest } from './fixtures.ts'
import { idPlaces } from './id-places.ts'
import { moduleWorld } from './module-world.ts'
import { type Operation, operationNamed, operations } from './operations.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())
await bootstrapPlatform()

async function startRelay(owner: Promise<Caller> | Caller = newCaller()) {
  const caller = await owner
  const key = newRelayKey()
  const { id: clusterId, enrollmentToken } = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId, nodes } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const newJob = async () => (await Job.submit(caller, scriptJob(clusterId))).id
  const call = async (operation: Operation, parts: RequestParts): Promise<TestResponse> => {
    const { target, body = '', headers, ...request } = toRequest(operation, parts, {})
    const authorization = await relayToken(relayId, key.privateKey, target, String(body))
    return send(operation.handler, { ...request, target, body, headers: { ...headers, ...authorization } })
  }
  const [queuedJob, runningJob] = [await newJob(), await newJob()]
  const { json } = await call(operationNamed('POST /api/v1/relay/jobs/{id}/claim'), { params: { id: runningJob } })
  return {
    call,
    caller,
    clusterId,
    queued: queuedJob,
    running: runningJob,
    leaseId: json.leaseId,
    nodeId: nodes[0]?.id ?? '',
  }
}
type Relay = Awaited<ReturnType<typeof startRelay>>

const requests: Record<string, (relay: Relay) => RequestParts> = {
  'POST /api/v1/relay/jobs/{id}/claim': ({ queued }) => ({ params: { id: queued } }),
  'POST /api/v1/relay/jobs/{id}/output': ({ running, leaseId, nodeId }) => ({
    params: { id: running },
    body: { leaseId, seq: 0, nodeId, stream: 'stdout', data: 'x' },
  }),
  'POST /api/v1/relay/jobs/{id}/complete': ({ running, leaseId, nodeId }) => ({
    params: { id: running },
    body: { leaseId, outcome: 'exited', exitCode: 0, nodes: [{ nodeId, exitCode: 0 }] },
  }),
}

const jobOperations = operations.filter(
  (operation) => operation.endpoint.access === 'relay' && idPlaces(operation).includes('params.id'),
)

test('the table contains every relay operation on a job', () => {
  expect(jobOperations.map(({ name }) => name).toSorted()).toEqual(Object.keys(requests).toSorted())
})

test.each(jobOperations)('$name is limited to the relay of the cluster', async (operation) => {
  const relay = await startRelay()
  const parts = requests[operation.name]?.(relay) ?? {}
  for (const otherRelay of [await startRelay(), await startRelay(relay.caller)]) {
    const writesBefore = writes()
    const { status, json } = await otherRelay.call(operation, parts)
    expect([status, json.error, writes()]).toEqual([404, 'job_not_found', writesBefore])
  }
  expect((await relay.call(operation, parts)).status).toBe(200)
})

const [claimName, completeName] = ['POST /api/v1/relay/jobs/{id}/claim', 'POST /api/v1/relay/jobs/{id}/complete']
const replace = async ({ caller, clusterId }: Relay) => {
  await enroll(enrollRequest((await issue(caller, clusterId)).enrollmentToken))
  return {}
}

const together = operationNamed('POST /api/v1/relay/completions')

test('a request with several reports is limited to the jobs of the cluster and to its current relay', async () => {
  const relay = await startRelay()
  const { params, body } = requests[completeName]?.(relay) ?? {}
  const parts = { body: { completions: [{ jobId: params?.['id'], ...body }] } }
  for (const otherRelay of [await startRelay(), await startRelay(relay.caller)]) {
    const writesBefore = writes()
    const { status, json } = await otherRelay.call(together, parts)
    expect([status, json.results, writes()]).toEqual([
      200,
      [{ jobId: relay.running, error: 'job_not_found' }],
      writesBefore,
    ])
  }
  const { status, json } = await relay.call(together, parts)
  expect([status, json.results]).toEqual([200, [{ jobId: relay.running, status: 'Completed' }]])
  await replace(relay)
  expect((await relay.call(together, parts)).json.error).toBe('relay_revoked')
})

test('rejects the lease of another job', async () => {
  const [relay, otherRelay] = [await startRelay(), await startRelay()]
  for (const operation of jobOperations) {
    const { body, ...parts } = requests[operation.name]?.(relay) ?? {}
    if (body === undefined) continue
    const { status, json } = await relay.call(operation, { ...parts, body: { ...body, leaseId: otherRelay.leaseId } })
    expect([status, json.error]).toEqual([409, 'lease_not_held'])
  }
})

test.each<[name: string, error: string, change: (relay: Relay) => object | Promise<object>]>([
  [claimName, 'relay_revoked', replace],
  ['POST /api/v1/relay/jobs/{id}/output', 'relay_revoked', replace],
  [completeName, 'relay_revoked', replace],
  ['POST /api/v1/relay/goodbye', 'relay_revoked', replace],
  [claimName, 'statement_key_unknown', () => ({ statementKey: 'unknown' })],
  [
    completeName,
    'output_out_of_order',
    ({ nodeId }) => ({ output: { seq: 1, chunks: [{ nodeId, stream: 'stdout', data: 'x' }] } }),
  ],
  [
    completeName,
    'job_already_finished',
    async (relay) => {
      await relay.call(operationNamed(completeName), requests[completeName]?.(relay) ?? {})
      return { exitCode: 1 }
    },
  ],
])('%s returns %s', async (name, error, change) => {
  const relay = await startRelay()
  const { body, ...parts } = requests[name]?.(relay) ?? { body: { reason: 'stop' } }
  const { json } = await relay.call(operationNamed(name), { ...parts, body: { ...body, ...(await change(relay)) } })
  expect(json.error).toBe(error)
})

test('a heartbeat neither reads nor changes other clusters', async () => {
  const [relay, otherRelay] = [await startRelay(), await startRelay()]
  const nodes = [
    { id: otherRelay.nodeId, status: 'Offline' },
    { id: relay.nodeId, status: 'Online' },
  ]
  const body = { nodes, running: [otherRelay.running], freeSlots: 4 }
  const { status, json } = await relay.call(operationNamed('POST /api/v1/relay/heartbeat'), { body })
  expect([status, json.jobs]).toEqual([200, [relay.queued]])
  const { items } = await Cluster.list(otherRelay.caller, { page: 1, pageSize: 10, status: undefined, type: undefined })
  expect(items.map((cluster) => cluster.status)).toEqual(['Healthy'])
  expect((await Job.read(otherRelay.caller, otherRelay.running)).status).toBe('Running')
})

const compressed = Buffer.from([0x1f, 0x8b, 0, 0xff, 0xc3, 0x28])

test.each([
  ['application/octet-stream', 0, compressed],
  ['text/html, application/octet-stream;q=0.9', 2, compressed.subarray(2)],
  ['application/json', 0, undefined],
])('returns output with Accept: %s from offset %i as the bytes of the relay', async (accept, offset, expected) => {
  const { call: callAsRelay, caller, running, leaseId, nodeId } = await startRelay()
  const data = compressed.toString('base64')
  const body = { leaseId, seq: 0, chunks: [{ nodeId, stream: 'stdout', data, encoding: 'base64' }] }
  await callAsRelay(operationNamed('POST /api/v1/relay/jobs/{id}/output'), { params: { id: running }, body })
  const viewer = await bearer(['Viewer'], caller.organisationId)
  const parts = { params: { id: running }, query: { offset: String(offset) } }
  const { headers, bytes, json } = await call(operationNamed('GET /api/v1/jobs/{id}/output'), parts, {
    ...viewer,
    accept,
  })
  if (expected === undefined) return expect(json.items).toMatchObject([{ data, encoding: 'base64' }])
  expect([headers['content-type'], headers['x-next-offset'], headers['vary']]).toEqual([
    'application/octet-stream',
    '6',
    expect.stringMatching(/accept/i),
  ])
  expect(bytes).toEqual(expected)
})
