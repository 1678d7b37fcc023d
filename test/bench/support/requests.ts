import type { Completion } from '@platform/contract/relay'
import { type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { newRelayKey, relayToken } from '../../support/fixtures.ts'
import { jsonRequest, type TestRequest, type TestResponse } from '../../support/request.ts'
import { range } from './statistics.ts'

export const administrator = { username: 'admin', password: 'correct horse battery' }

const bearer = (accessToken: string) => ({ Authorization: `Bearer ${accessToken}` })

export const getRequest = (target: string, accessToken: string): TestRequest => ({
  target,
  headers: bearer(accessToken),
})

export const changeRequest = (method: string, target: string, accessToken: string, body: object = {}): TestRequest => ({
  ...jsonRequest(target, body, bearer(accessToken)),
  method,
})

export function expectSuccess(response: TestResponse): TestResponse {
  if (response.status < 300) return response
  throw new Error(`The request failed with ${response.status}: ${response.text}`)
}

export const registerRequest = (accessToken: string): TestRequest =>
  changeRequest('POST', '/api/v1/clusters', accessToken, { name: `bench-${randomUUID()}`, type: 'Hypervisor' })

export const jobRequest = (accessToken: string, clusterId: string, script = 'uname'): TestRequest =>
  changeRequest('POST', '/api/v1/jobs', accessToken, { clusterId, type: 'InvokeScript', payload: { script } })

export const batchSize = 500

export const batchRequest = (accessToken: string, clusterIds: readonly string[], script = () => sampleScript) =>
  changeRequest('POST', '/api/v1/jobs/batch', accessToken, {
    jobs: clusterIds.map((clusterId) => ({ clusterId, type: 'InvokeScript', payload: { script: script() } })),
  })

export const fillBatch = (clusterIds: readonly string[]): string[] =>
  range(batchSize).map((index) => clusterIds[index % clusterIds.length] ?? '')

export const sampleScript = '#!/bin/sh\nset -eu\nuname -a\ndf -h | sort\n'.padEnd(1024, 'true && ')

export const randomScript = (): string => Array.from(randomBytes(1024), (byte) => (byte % 36).toString(36)).join('')

export interface BenchRelay {
  clusterId: string
  relayId: string
  privateKey: KeyObject
  nodeIds: string[]
}

export type SendJson = (functionName: string, request: TestRequest) => Promise<any>

export async function enrollRelay(sendJson: SendJson, accessToken: string): Promise<BenchRelay> {
  const { id: clusterId, enrollmentToken } = await sendJson('clusters', registerRequest(accessToken))
  const { privateKey, wire: publicKey } = newRelayKey()
  const details = { displayName: 'relay on node-1', hostname: 'node-1', platform: 'linux', relayVersion: '0.1.0' }
  const body = { enrollmentToken, publicKey, ...details, nodes: [{ name: 'node-1' }] }
  const { relayId, nodes } = await sendJson('relay', jsonRequest('/api/v1/relay/enroll', body))
  return { clusterId, relayId, privateKey, nodeIds: nodes.map(({ id }: { id: string }) => id) }
}

export async function relayRequest(relay: BenchRelay, target: string, body: object): Promise<TestRequest> {
  const text = JSON.stringify(body)
  return jsonRequest(target, text, await relayToken(relay.relayId, relay.privateKey, target, text))
}

export const heartbeatRequest = (
  relay: BenchRelay,
  state: { freeSlots?: number; channel?: 'open' | undefined } = {},
): Promise<TestRequest> => {
  const nodes = relay.nodeIds.map((id) => ({ id, status: 'Online' }))
  return relayRequest(relay, '/api/v1/relay/heartbeat', { nodes, running: [], freeSlots: 4, ...state })
}

/** Returns a heartbeat request that claims up to four waiting jobs. */
export const claimingHeartbeat = (relay: BenchRelay, claimKey: string = randomUUID()): Promise<TestRequest> => {
  const nodes = relay.nodeIds.map((id) => ({ id, status: 'Online' }))
  return relayRequest(relay, '/api/v1/relay/heartbeat', { nodes, running: [], freeSlots: 4, claimKey })
}

export const claimRequest = (relay: BenchRelay, jobId: string): Promise<TestRequest> =>
  relayRequest(relay, `/api/v1/relay/jobs/${jobId}/claim`, {})

export const outputRequest = (relay: BenchRelay, jobId: string, leaseId: string): Promise<TestRequest> => {
  const output = { leaseId, seq: 0, nodeId: relay.nodeIds[0], stream: 'stdout', data: 'Linux\n' }
  return relayRequest(relay, `/api/v1/relay/jobs/${jobId}/output`, output)
}

export const completeRequest = (relay: BenchRelay, jobId: string, leaseId: string): Promise<TestRequest> => {
  const nodes = relay.nodeIds.map((nodeId) => ({ nodeId, exitCode: 0 }))
  return relayRequest(relay, `/api/v1/relay/jobs/${jobId}/complete`, { leaseId, outcome: 'exited', exitCode: 0, nodes })
}

export function reportWithOutput({ nodeIds }: BenchRelay, leaseId: string): Completion {
  const nodes = nodeIds.map((nodeId) => ({ nodeId, exitCode: 0 }))
  const output = { seq: 0, chunks: [{ nodeId: nodeIds[0] ?? '', stream: 'stdout' as const, data: 'Linux\n' }] }
  return { leaseId, outcome: 'exited', exitCode: 0, nodes, output }
}

export const completeWithOutput = (relay: BenchRelay, jobId: string, leaseId: string): Promise<TestRequest> =>
  relayRequest(relay, `/api/v1/relay/jobs/${jobId}/complete`, reportWithOutput(relay, leaseId))

export async function fetchJson(
  url: string,
  { target: path, method = 'GET', headers = {}, body }: TestRequest,
): Promise<any> {
  const response = await fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body: String(body) }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} responded ${response.status}: ${text}`)
  return JSON.parse(text)
}
